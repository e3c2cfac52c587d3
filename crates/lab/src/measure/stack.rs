//! Whose transport moves the bytes of a run in real time.

/// A transport that runs in real time between hosts of the emulator. Congestion control and, where
/// the stack has a choice, the acknowledgement policy are those of the scenario's first flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The kernel's TCP, with a receiving host like this.
    Kernel(Receiver),
    /// The same, with a sender that is paced also where the controller does not ask for it.
    KernelPaced(Receiver),
    /// The kernel's TCP without generic segmentation offload at the sender (GSO), and paced also
    /// where the controller does not ask for it: it hands segments to the device one by one, at its
    /// pacing rate. Receives as [`Receiver::Offloaded`].
    KernelWithoutGso,
    /// quinn, configured like this.
    Quinn(Tuning),
    /// This project's, with an endpoint that takes what arrives like this.
    Tack(Taking),
    /// The same with [`Taking::Batches`], without GSO at the sender: it sends each segment by
    /// itself.
    TackWithoutGso,
}

/// How the receiving endpoint of this project takes segments that arrive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// One by one (`--coalesce off`): the policy decides the number of acknowledgements.
    Singly,
    /// All that one system call delivers, with one acknowledgement (`--coalesce on`): as the
    /// kernel's TCP takes what receive offload has joined.
    Batches,
}

/// A host and a program that receive by the kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Generic receive offload: segments that come together are one packet to TCP. The program is
    /// iperf3, which reads whenever something has come.
    Offloaded,
    /// As [`Receiver::Offloaded`], to a program that reads every 20 ms, as with
    /// [`Receiver::SeldomRead`]: what the reads of iperf3 save is the difference.
    OffloadedSeldomRead,
    /// Each frame is a packet of its own. SACKs are not compressed, and acknowledgements of
    /// segments that waited for the program to release the socket are not deferred: nothing that
    /// the kernel lets one turn off saves an acknowledgement. iperf3.
    Plain,
    /// As [`Receiver::Plain`], but the program's reads do not matter: it reads every 20 ms, so that
    /// it hardly ever holds the socket when a segment comes, and has a low-water mark that is not
    /// reached, so that the kernel leaves no acknowledgement to the next read.
    SeldomRead,
}

impl Receiver {
    /// Whether generic receive offload is on.
    pub const fn has_offload(self) -> bool {
        matches!(self, Self::Offloaded | Self::OffloadedSeldomRead)
    }

    /// Whether the program reads every 20 ms; the others are iperf3.
    pub const fn reads_seldom(self) -> bool {
        matches!(self, Self::OffloadedSeldomRead | Self::SeldomRead)
    }
}

/// How quinn is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// Windows of 16 MiB and full datagrams from the first.
    Wide,
    /// [`Tuning::Wide`], and the sender asks for an acknowledgement of every eleventh packet by the
    /// ACK-frequency extension.
    AckFrequency,
    /// [`Tuning::Wide`], and the sender asks for an acknowledgement every 20 ms, as many as TACK
    /// sends at a round-trip time of 80 ms.
    RareAcks,
    /// As quinn comes: a window of 1.25 MB for a stream, datagrams of 1,200 bytes until a larger
    /// size has been found.
    Defaults,
}

impl Stack {
    pub(crate) const ALL: [Self; 14] = [
        Self::Kernel(Receiver::Offloaded),
        Self::Kernel(Receiver::OffloadedSeldomRead),
        Self::Kernel(Receiver::Plain),
        Self::Kernel(Receiver::SeldomRead),
        Self::KernelPaced(Receiver::Offloaded),
        Self::KernelPaced(Receiver::SeldomRead),
        Self::KernelWithoutGso,
        Self::Quinn(Tuning::Wide),
        Self::Quinn(Tuning::AckFrequency),
        Self::Quinn(Tuning::RareAcks),
        Self::Quinn(Tuning::Defaults),
        Self::Tack(Taking::Singly),
        Self::Tack(Taking::Batches),
        Self::TackWithoutGso,
    ];

    /// The receiving host and program, where the kernel's TCP receives.
    pub const fn receiver(self) -> Option<Receiver> {
        match self {
            Self::Kernel(receiver) | Self::KernelPaced(receiver) => Some(receiver),
            Self::KernelWithoutGso => Some(Receiver::Offloaded),
            Self::Quinn(_) | Self::Tack(_) | Self::TackWithoutGso => None,
        }
    }

    /// Whether the kernel's TCP sends, and is paced whatever its congestion control.
    pub const fn is_always_paced(self) -> bool {
        matches!(self, Self::KernelPaced(_) | Self::KernelWithoutGso)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Kernel(Receiver::Offloaded) => "real-time kernel",
            Self::Kernel(Receiver::OffloadedSeldomRead) => "real-time kernel, seldom read",
            Self::Kernel(Receiver::Plain) => "real-time kernel without receive offload",
            Self::Kernel(Receiver::SeldomRead) => {
                "real-time kernel without receive offload, seldom read"
            }
            Self::KernelPaced(Receiver::Offloaded) => "real-time kernel, paced",
            Self::KernelPaced(Receiver::OffloadedSeldomRead) => {
                "real-time kernel, paced, seldom read"
            }
            Self::KernelPaced(Receiver::Plain) => "real-time kernel without receive offload, paced",
            Self::KernelPaced(Receiver::SeldomRead) => {
                "real-time kernel without receive offload, paced, seldom read"
            }
            Self::KernelWithoutGso => "real-time kernel without segmentation offload, paced",
            Self::Quinn(Tuning::Wide) => "real-time quinn",
            Self::Quinn(Tuning::AckFrequency) => "real-time quinn with ack-frequency",
            Self::Quinn(Tuning::RareAcks) => "real-time quinn with rare acknowledgements",
            Self::Quinn(Tuning::Defaults) => "real-time quinn as it comes",
            Self::Tack(Taking::Singly) => "real-time tack",
            Self::Tack(Taking::Batches) => "real-time tack in batches",
            Self::TackWithoutGso => "real-time tack in batches, without segmentation offload",
        }
    }
}
