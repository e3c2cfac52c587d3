//! How much bottleneck buffer a sparsely acknowledged sender needs: beta/(beta − 1) bandwidth-delay
//! products of window, less the one on the path.

use super::{cells, is_long, mean, set, utilisation};

#[test]
fn a_third_of_the_product_is_enough_at_four_acknowledgements_a_round_trip() {
    for controller in ["bbr", "cubic"] {
        for beta in cells(&[4], &[2, 4, 8]) {
            let mut row = Vec::new();
            let short = if is_long() { &[0.33, 1.0][..] } else { &[0.33] };
            for queue in cells(short, &[0.1, 0.2, 0.33, 0.5, 1.0, 2.0]) {
                let share = mean(
                    "buffer",
                    &set![
                        format_args!("flow.0.congestion={controller}"),
                        format_args!("flow.0.ack=tack:beta={beta}"),
                        format_args!("wired.queue={queue}bdp"),
                    ],
                    |report| utilisation(report, 100.0),
                );
                row.push((queue, share));
            }
            let text: Vec<_> = row
                .iter()
                .map(|(queue, share)| format!("{queue} bdp {:.1} %", 100.0 * share))
                .collect();
            println!("{controller}, beta {beta}: {}", text.join(", "));
            let at = |queue: f64| row.iter().find(|(q, _)| *q == queue).expect("measured").1;
            if beta >= 4 {
                assert!(at(0.33) >= 0.95, "{controller}, beta {beta}");
            }
            // What fills the link with a third fills it with the whole.
            if is_long() {
                assert!(at(1.0) >= 0.95, "{controller}, beta {beta}");
            }
        }
    }
}
