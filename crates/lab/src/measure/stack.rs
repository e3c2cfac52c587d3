//! Whose transport moves the bytes of a run in real time.

/// A transport that runs in real time between hosts of the emulator. Congestion control and, where
/// the stack has a choice, the acknowledgement policy are those of the scenario's first flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The kernel's TCP, with generic receive offload, or with each frame alone and without
    /// compression of SACKs.
    Kernel {
        /// Whether segments that come together are one packet to TCP.
        receive_offload: bool,
    },
    /// quinn, with or without the ACK-frequency extension of QUIC.
    Quinn {
        /// Whether the sender asks for fewer acknowledgements.
        ack_frequency: bool,
    },
    /// This project's.
    Tack,
}

impl Stack {
    pub(crate) const ALL: [Self; 5] = [
        Self::Kernel {
            receive_offload: true,
        },
        Self::Kernel {
            receive_offload: false,
        },
        Self::Quinn {
            ack_frequency: false,
        },
        Self::Quinn {
            ack_frequency: true,
        },
        Self::Tack,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Kernel {
                receive_offload: true,
            } => "real-time kernel",
            Self::Kernel {
                receive_offload: false,
            } => "real-time kernel without receive offload",
            Self::Quinn {
                ack_frequency: false,
            } => "real-time quinn",
            Self::Quinn {
                ack_frequency: true,
            } => "real-time quinn with ack-frequency",
            Self::Tack => "real-time tack",
        }
    }
}
