//! What flows with almost empty buffers take of memory, however long they run: bytes that the
//! allocator gave out, in virtual time.

use allocation_counter::measure;
use tack_sim::{Observers, Scenario, run};

const WIFI: &str = "[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\n";
const WIRED: &str = "[wired]\nrate = '1Gbps'\ndelay = '10ms'\n";

/// Most bytes that `count` flows take at once which ask for `app` for `duration` seconds.
fn peak(network: &str, is_wifi: bool, count: usize, app: &str, duration: u32) -> u64 {
    let stations = if is_wifi {
        format!("stations = {}\n", count.min(10))
    } else {
        String::new()
    };
    let mut text = format!("duration = '{duration}s'\n{network}{stations}");
    for flow in 0..count {
        let to = if is_wifi {
            format!("to = 'sta{}'\n", flow % 10)
        } else {
            String::new()
        };
        text += &format!("[[flow]]\napp = '{app}'\nstart = '{flow}ms'\n{to}");
    }
    let scenario = Scenario::from_toml("memory.toml", &text, &[]).expect("the scenario is sound");
    let taken = measure(|| {
        let report = run(&scenario, 1, &mut Observers::default()).expect("the run succeeds");
        let least = 2 * u64::from(duration) * 8 / 10;
        for flow in &report.flows {
            let requests = flow.requests.as_ref().expect("the flow asks");
            assert!(requests.completed >= least, "{}", requests.completed);
            assert_eq!(flow.stalls, 0);
        }
    });
    taken.bytes_max
}

/// A flow once took 0.6 MiB. A tenth is enough where its buffers are empty but for a small request
/// now and then, and what they once held they do not keep.
#[test]
fn flows_with_almost_empty_buffers_take_little_memory_however_long_they_run() {
    const MOST: u64 = (600 << 10) / 10;
    for (name, network, is_wifi) in [("Wi-Fi", WIFI, true), ("wired", WIRED, false)] {
        let each = |response: &str, duration| {
            let app = format!("request:200B,{response},gap=500ms");
            let few = peak(network, is_wifi, 20, &app, duration);
            let many = peak(network, is_wifi, 100, &app, duration);
            let each = (many - few) / 80;
            println!("{name}, {response}, {duration} s: {each} bytes a flow");
            each
        };
        for (response, most) in [("1KiB", MOST), ("10KiB", 2 * MOST)] {
            let (soon, late) = (each(response, 2), each(response, 60));
            assert!(soon <= most && late <= most, "{soon}, {late} bytes");
            // A full page in each of the four buffers would be 256 KiB.
            assert!(late <= soon + (4 << 10), "{soon} has grown to {late} bytes");
        }
    }
}
