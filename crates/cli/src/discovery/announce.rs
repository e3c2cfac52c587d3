//! Says on the local network that a program waits.

use std::net::SocketAddr;

use data_encoding::HEXLOWER;
use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};

use super::{Mark, SERVICE};

/// An announcement; withdrawn when dropped.
pub(crate) struct Announcement {
    daemon: ServiceDaemon,
    name: String,
    mark: Mark,
}

impl Announcement {
    /// Announces that the program with this mark waits at `address`, on the interface that has
    /// this address and on no other. Names are drawn anew each time: they say nothing about the
    /// machine.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn new(mark: Mark, address: SocketAddr) -> Result<Self, String> {
        let random = || -> Result<String, String> {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
            Ok(HEXLOWER.encode(&bytes))
        };
        let (instance, host) = (random()?, format!("{}.local.", random()?));
        let properties = [mark.property()?];
        let announce = || {
            let daemon = ServiceDaemon::new()?;
            daemon.disable_interface(IfKind::All)?;
            daemon.enable_interface(IfKind::Addr(address.ip()))?;
            let service = ServiceInfo::new(
                SERVICE,
                &instance,
                &host,
                address.ip(),
                address.port(),
                &properties[..],
            )?;
            let name = service.get_fullname().to_owned();
            daemon.register(service)?;
            Ok(Self { daemon, name, mark })
        };
        announce().map_err(|error: mdns_sd::Error| error.to_string())
    }

    /// What it announces.
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Others forget it at once instead of after its time to live.
        let _ = self.daemon.unregister(&self.name);
        let _ = self.daemon.shutdown();
    }
}
