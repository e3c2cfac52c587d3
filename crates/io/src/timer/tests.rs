//! Both timers do the same; nothing here asserts how late a wake-up was.

use std::future::poll_fn;
use std::time::Duration;

use tack_base::Instant;

use crate::Clock;

macro_rules! timer_tests {
    ($room:ident) => {
        mod $room {
            use super::*;
            use crate::timer::$room::PacingTimer;

            #[tokio::test]
            async fn fires_once_for_each_arming() {
                let clock = Clock::new();
                let timer = PacingTimer::new().unwrap();
                for _ in 0..3 {
                    let now = clock.now();
                    let deadline = now + Duration::from_micros(300);
                    timer.arm(now, deadline).unwrap();
                    while clock.now() < deadline {
                        poll_fn(|cx| timer.poll_expired(cx)).await.unwrap();
                    }
                }
                let again = tokio::time::timeout(
                    Duration::from_millis(20),
                    poll_fn(|cx| timer.poll_expired(cx)),
                );
                assert!(again.await.is_err(), "fired without being armed");
            }

            #[tokio::test]
            async fn an_earlier_deadline_replaces_a_later_one() {
                let clock = Clock::new();
                let timer = PacingTimer::new().unwrap();
                let now = clock.now();
                timer.arm(now, now + Duration::from_secs(3600)).unwrap();
                timer.arm(now, Instant::ZERO).unwrap();
                poll_fn(|cx| timer.poll_expired(cx)).await.unwrap();
            }
        }
    };
}

timer_tests!(fallback);
#[cfg(target_os = "linux")]
timer_tests!(linux);
