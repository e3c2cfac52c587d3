//! A network namespace for each test, and hosts in it.

use std::net::IpAddr;
use std::time::Duration;

use tack::{Builder, Endpoint, TunNetwork, TunOptions};
use tack_io::namespace::Namespace;

/// Long enough for any machine; reached only when something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `test` on a thread in a network namespace of its own; says so where it cannot.
pub(crate) fn isolated<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    isolated_for(PATIENCE, test);
}

/// As [`isolated`], for a test that takes up to `patience`.
pub(crate) fn isolated_for<F: Future<Output = ()>>(
    patience: Duration,
    test: impl FnOnce() -> F + Send + 'static,
) {
    let run = move || -> Result<(), String> {
        Namespace::enter_new().map_err(|error| format!("no network namespace: {error}"))?;
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
            .map_err(|error| format!("cannot open /dev/net/tun: {error}"))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::time::timeout(patience, test())
                .await
                .expect("the test ends in time");
        });
        Ok(())
    };
    // It has the name of the test, by which it tells of what it leaves out.
    let thread = std::thread::Builder::new();
    let thread = match std::thread::current().name() {
        Some(name) => thread.name(name.to_owned()),
        None => thread,
    };
    match thread.spawn(run).unwrap().join() {
        Ok(Ok(())) => {}
        Ok(Err(why)) => tack_skip::skipped(why),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A setting of the kernel in this namespace, such as `ipv4/tcp_sack`.
pub(crate) fn sysctl(name: &str, value: &str) {
    let path = format!("/proc/sys/net/{name}");
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// As [`sysctl`], for a setting that older kernels do not have.
pub(crate) fn set_if_known(name: &str, value: &str) {
    if std::path::Path::new(&format!("/proc/sys/net/{name}")).exists() {
        sysctl(name, value);
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A device with two networks: number `number` of those of IPv4 and of IPv6.
pub(crate) fn options(number: u8) -> TunOptions {
    let network = |kernel: String, prefix, stack: String| TunNetwork {
        kernel: ip(&kernel),
        prefix,
        stack: ip(&stack),
    };
    let mut options = TunOptions::new(network(
        format!("10.77.{number}.1"),
        24,
        format!("10.77.{number}.2"),
    ));
    options.networks.push(network(
        format!("fd77:{number}::1"),
        64,
        format!("fd77:{number}::2"),
    ));
    options
}

/// A host behind a device.
pub(crate) fn host(options: TunOptions) -> Endpoint {
    build(Endpoint::builder().tun(options))
}

pub(crate) fn build(builder: Builder) -> Endpoint {
    builder.insecure(true).build().unwrap()
}
