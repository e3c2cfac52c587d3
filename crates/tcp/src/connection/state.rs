//! The state machine of RFC 9293 §3.3.2 as a table.

/// Connection states (RFC 9293 §3.3.2). LISTEN lives in the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Our SYN is out.
    SynSent,
    /// A SYN came, ours is out, its acknowledgement is awaited.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// Our stream is finished, its FIN not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged, the peer's is awaited.
    FinWait2,
    /// The peer's FIN came, our stream goes on.
    CloseWait,
    /// Both streams are finished, our FIN is not acknowledged.
    Closing,
    /// The peer's FIN came first, ours awaits its acknowledgement.
    LastAck,
    /// Both sides are done; late segments die here.
    TimeWait,
}

/// What moves a connection from state to state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transition {
    /// A SYN without an acknowledgement of ours arrived in SYN-SENT: simultaneous open.
    SynArrived,
    /// Our SYN was acknowledged and the peer's is known.
    HandshakeComplete,
    /// The application finished its stream.
    Finish,
    /// The peer's FIN was reached in order.
    FinArrived,
    /// Our FIN was acknowledged.
    FinAcknowledged,
    /// The time of the state is over, or the connection was reset or given up.
    End,
}

impl State {
    /// The state after `transition`; the same state where the transition means nothing.
    pub(crate) fn after(self, transition: Transition) -> Self {
        use State::*;
        use Transition::*;
        match (self, transition) {
            (SynSent, SynArrived) => SynReceived,
            (SynSent | SynReceived, HandshakeComplete) => Established,
            (Established, Finish) => FinWait1,
            (CloseWait, Finish) => LastAck,
            (Established, FinArrived) => CloseWait,
            (FinWait1, FinArrived) => Closing,
            (FinWait2, FinArrived) => TimeWait,
            (FinWait1, FinAcknowledged) => FinWait2,
            (Closing, FinAcknowledged) => TimeWait,
            (LastAck, FinAcknowledged) => Closed,
            (_, End) => Closed,
            (state, _) => state,
        }
    }

    /// Both SYNs are known: sequence numbers are synchronised.
    #[inline]
    pub fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Data may leave (what was queued, also after the application finished).
    #[inline]
    pub(crate) fn may_send_data(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Data of the peer is expected.
    #[inline]
    pub(crate) fn may_receive_data(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(start: State, steps: &[Transition]) -> State {
        steps.iter().fold(start, |state, step| state.after(*step))
    }

    #[test]
    fn paths_of_the_diagram() {
        use Transition::*;
        let open = walk(State::SynSent, &[HandshakeComplete]);
        assert_eq!(open, State::Established);
        assert_eq!(
            walk(State::SynSent, &[SynArrived, HandshakeComplete]),
            State::Established
        );
        assert_eq!(
            walk(open, &[Finish, FinAcknowledged, FinArrived]),
            State::TimeWait
        );
        assert_eq!(
            walk(open, &[Finish, FinArrived, FinAcknowledged]),
            State::TimeWait
        );
        assert_eq!(
            walk(open, &[FinArrived, Finish, FinAcknowledged]),
            State::Closed
        );
        assert_eq!(walk(open, &[End]), State::Closed);
    }

    #[test]
    fn closed_stays_closed() {
        use Transition::*;
        for step in [
            SynArrived,
            HandshakeComplete,
            Finish,
            FinArrived,
            FinAcknowledged,
            End,
        ] {
            assert_eq!(State::Closed.after(step), State::Closed);
        }
    }
}
