//! The listeners of an endpoint: of single ports, and one of all the other ports.

use alloc::collections::BTreeMap;

use super::listener::Listener;

/// Listeners by port.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    by_port: BTreeMap<u16, Listener>,
    any: Option<Listener>,
}

impl Listeners {
    /// The listener that a segment to `port` concerns.
    pub(super) fn get(&self, port: u16) -> Option<&Listener> {
        self.by_port.get(&port).or(self.any.as_ref())
    }

    pub(super) fn get_mut(&mut self, port: u16) -> Option<&mut Listener> {
        self.by_port.get_mut(&port).or(self.any.as_mut())
    }

    /// True when somebody listens on `port`.
    pub(super) fn contains(&self, port: u16) -> bool {
        self.any.is_some() || self.by_port.contains_key(&port)
    }

    /// The listener of `port` itself, or with `None` that of all the others.
    pub(super) fn of(&self, port: Option<u16>) -> Option<&Listener> {
        match port {
            Some(port) => self.by_port.get(&port),
            None => self.any.as_ref(),
        }
    }

    pub(super) fn of_mut(&mut self, port: Option<u16>) -> Option<&mut Listener> {
        match port {
            Some(port) => self.by_port.get_mut(&port),
            None => self.any.as_mut(),
        }
    }

    /// Adds one whose place is free.
    pub(super) fn insert(&mut self, port: Option<u16>, listener: Listener) {
        match port {
            Some(port) => {
                self.by_port.insert(port, listener);
            }
            None => self.any = Some(listener),
        }
    }

    pub(super) fn remove(&mut self, port: Option<u16>) -> Option<Listener> {
        match port {
            Some(port) => self.by_port.remove(&port),
            None => self.any.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_port_of_its_own_goes_before_all_ports() {
        let listener = |backlog| Listener::new(Config::default(), backlog, None);
        let mut listeners = Listeners::default();
        listeners.insert(Some(80), listener(1));
        assert!(listeners.contains(80) && !listeners.contains(81));
        listeners.insert(None, listener(2));
        assert!(listeners.contains(81) && listeners.get(0).is_some());
        listeners.get_mut(80).unwrap().opened();
        // One more would fill the backlog of the port, and not that of all ports.
        use super::super::listener::Admission;
        assert_eq!(listeners.get(80).unwrap().admit(), Admission::Cookie);
        assert_eq!(listeners.get(81).unwrap().admit(), Admission::Record);
        assert!(listeners.of(Some(81)).is_none() && listeners.of(None).is_some());
        assert!(listeners.remove(Some(80)).is_some() && listeners.remove(None).is_some());
        assert!(!listeners.contains(80));
    }
}
