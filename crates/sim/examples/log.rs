//! Prints every TCP segment of a run, as tcpdump would: `log FILE SEED [FROM_SECONDS TO_SECONDS]`.

use std::error::Error;
use std::path::Path;

use tack_base::Duration;
use tack_sim::{Checks, Observer, Observers, PacketEvent, Passing, Sample, Scenario, run, table};
use tack_wire::Segment;

struct Log {
    from: f64,
    to: f64,
}

impl Observer for Log {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let at = event.at.as_secs_f64();
        if at < self.from || at > self.to {
            return;
        }
        let Ok(segment) = Segment::parse(event.packet.transport()) else {
            return;
        };
        let header = &segment.header;
        println!(
            "{at:.6} {} {} {:?} seq {:?}+{} ack {:?} win {} {:?} ts {:?} ecn {:?}",
            event.host.name(),
            if event.passing == Passing::Out {
                "->"
            } else {
                "<-"
            },
            header.flags,
            header.seq,
            event.packet.payload.len(),
            header.ack,
            header.window,
            header.options.sack,
            header.options.timestamps.map(|t| (t.value, t.echo)),
            event.packet.ecn(),
        );
    }

    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }

    fn on_sample(&mut self, sample: &Sample) {
        let at = sample.at.as_secs_f64();
        if (self.from..self.to).contains(&at) {
            println!("{sample:?}");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, seed, rest @ ..] = &arguments[..] else {
        return Err("usage: log FILE SEED [FROM_SECONDS TO_SECONDS]".into());
    };
    let mut log = match rest {
        [from, to] => Log {
            from: from.parse()?,
            to: to.parse()?,
        },
        _ => Log { from: 0.0, to: 1e9 },
    };
    let scenario = Scenario::from_file(Path::new(file), &[])?;
    let mut observers = Observers::default()
        .with(&mut log)
        .checking(Checks::EveryEvent);
    let report = run(&scenario, seed.parse()?, &mut observers)?;
    println!("{}", report.to_json());
    print!("{}", table(&[report]));
    Ok(())
}
