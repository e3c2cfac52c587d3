//! One-shot timers precise enough to pace by.
//!
//! The runtime's own timer counts whole milliseconds, in which a fast path sends hundreds of
//! segments. On Linux a timer file descriptor is watched instead; elsewhere the runtime's timer
//! serves, and its coarseness is declared, so that the pacer sends early rather than late.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::PacingTimer;

// Compiled for the tests on Linux too, so that it cannot rot.
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", allow(unreachable_pub))]
mod fallback;
#[cfg(not(target_os = "linux"))]
pub use fallback::PacingTimer;

#[cfg(test)]
mod tests;
