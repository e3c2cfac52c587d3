//! The figures: a folder for each paper, and in it a file named after the numbers of its figures.

mod filter;
mod hack;
mod mechanisms;
mod presentation;
mod readings;
mod sequel;
mod stacks;
mod tack;
mod transport;
mod upload_queues;

use crate::figure::Figure;

/// Figures whose runs take place in real time, on a machine that does nothing else: they are
/// measured when they are named.
pub const REAL_TIME: &[Figure] = &[stacks::FIGURE];

/// The names of the paths of the figure in real time.
pub fn real_time_paths() -> impl Iterator<Item = &'static str> {
    stacks::paths()
}

/// All other figures, paper by paper and in its order.
pub const FIGURES: &[Figure] = &[
    tack::fig1_wlan_preview::FIGURE,
    tack::fig3_air_contention::FIGURE,
    tack::fig5a_receive_buffer::FIGURE,
    tack::fig5b_both_ways::FIGURE,
    tack::fig6a_round_trip::FIGURE,
    tack::fig6b_timing_gain::FIGURE,
    tack::fig7_9a_udp::BASELINES,
    tack::fig8_wlan_frequency::FIGURE,
    tack::fig8a_latency::FIGURE,
    tack::fig7_9a_udp::IDEAL_GAIN,
    tack::fig9b_10b_ack_thinning::IDEAL,
    tack::fig10a_wlan_goodput::FIGURE,
    tack::fig9b_10b_ack_thinning::ACTUAL,
    tack::fig11_projection::FIGURE,
    tack::fig12_13_combined_links::FIGURE,
    tack::fig14_ranking::FIGURE,
    tack::fig15_friendliness::FIGURE,
    tack::fig17_equation::FIGURE,
    tack::figb3_window::FIGURE,
    sequel::s1_convergence::FIGURE,
    sequel::s2_rtt_fairness::FIGURE,
    sequel::s3_traffic_change::FIGURE,
    hack::fig1_analytic::LEGACY,
    hack::fig1_analytic::AGGREGATED,
    hack::fig9_goodput::FIGURE,
    hack::table1_first_attempts::FIGURE,
    hack::table2_3_transfer::COUNTS,
    hack::table2_3_transfer::TIMES,
    hack::cross_validation::FIGURE,
    hack::fig10_downloads::FIGURE,
    hack::fig11_12_noise::ENVELOPE,
    hack::fig11_12_noise::RATES,
    filter::fig4_5_queue::LENGTH,
    filter::fig4_5_queue::FAIRNESS,
    filter::fig6_throughput::FIGURE,
    filter::fig7_contention::FIGURE,
    filter::fig8_contention_window::FIGURE,
    filter::fig9_adaptive_window::FIGURE,
    filter::fig10_delayed_acks::FIGURE,
    mechanisms::FIGURE,
];
