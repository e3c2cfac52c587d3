//! The figures of the TACK paper (SIGCOMM 2020).

pub(super) mod calibrations;
pub(super) mod fig10a_wlan_goodput;
pub(super) mod fig11_projection;
pub(super) mod fig12_13_combined_links;
pub(super) mod fig14_ranking;
pub(super) mod fig15_friendliness;
pub(super) mod fig17_equation;
pub(super) mod fig1_wlan_preview;
pub(super) mod fig3_air_contention;
pub(super) mod fig5a_receive_buffer;
pub(super) mod fig5b_both_ways;
pub(super) mod fig6a_round_trip;
pub(super) mod fig6b_timing_gain;
pub(super) mod fig7_9a_udp;
pub(super) mod fig8_wlan_frequency;
pub(super) mod fig8a_latency;
pub(super) mod fig9b_10b_ack_thinning;
pub(super) mod figb3_window;
pub(super) mod links;
pub(super) mod media;
pub(super) mod paths;
