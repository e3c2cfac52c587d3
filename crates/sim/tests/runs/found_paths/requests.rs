//! Requests and their answers: how many there are in a time, and what of them is sent again.

use rayon::prelude::*;

use super::flows;
use crate::{CONTROLLERS, controllers};

/// Path 61022: requests over a round trip of 1.1 ms, and hosts that lose the end of what they send
/// at once. Only a remainder may be acknowledged as late as delayed acknowledgements would be. A
/// probe that grants 40 ms to whatever is in flight answers each loss that much too late.
#[test]
fn a_probe_waits_for_a_remainder_alone() {
    let answers = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '98071kbps'\ndelay = '571us'\nqueue = '1.0bdp'\n\
             rate_reverse = '22327kbps'\nshort_sends_reverse = 0.2133\nbatch_reverse = 64\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\ntimestamps = false\n\
             app = 'request:17156B,9193B,gap=3354us'\n"
        );
        let done = |seed| flows(&text, seed)[0].requests.expect("it asks").completed;
        (1..=6).into_par_iter().map(done).sum::<u64>()
    };
    controllers().par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| answers(congestion, ack));
        println!("{congestion}: {tack} answers, {plain} with delayed:2");
        assert!(
            tack >= plain,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    });
}

/// Path 70441: requests, and a queue on the way back that holds no answer while an acknowledgement
/// leaves, so that most answers get lost at first. A probe may follow each of them, and the timer
/// does not stay backed off: 41 answers before that, and 78 with `delayed:2`.
#[test]
fn answers_that_get_lost_at_first_are_probed_each_time() {
    let answers = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '29376kbps'\ndelay = '2195us'\nqueue = '1.0bdp'\n\
             rate_reverse = '454kbps'\n[wired.suspension]\nstart = '182ms'\nperiod = '1495ms'\n\
             duration = '19ms'\nduration_max = '350ms'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:5050B,361B'\n"
        );
        let done = |seed| flows(&text, seed)[0].requests.expect("it asks").completed;
        (1..=8).into_par_iter().map(done).sum::<u64>()
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| answers(congestion, ack));
        println!("{congestion}: {tack} answers, {plain} with delayed:2");
        assert!(
            tack >= plain,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    });
}

/// Path 80457: the last acknowledgement of each request waits in a queue with its answer, behind
/// reports that came at once, and comes a little later than a probe waits. An acknowledgement that
/// comes sooner after the probe than anything was ever answered is the original's, and says how
/// long such answers take: 7 probes for nothing instead of one for each of 18 requests.
#[test]
fn an_answer_that_waits_with_data_is_not_probed_for_each_time() {
    let again = |ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '7346kbps'\ndelay = '6100us'\nqueue = '1.0bdp'\n\
             rate_reverse = '76kbps'\nqueue_reverse = '72p'\n\
             [[wired.blackout_reverse]]\nstart = '1us'\nduration = '10968us'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\napp = 'request:9118B,2994B,gap=103976us'\n"
        );
        let flow = flows(&text, 1).remove(0);
        (
            flow.retransmitted_segments,
            flow.requests.expect("it asks").completed,
        )
    };
    let [(tack, answers), (plain, plain_answers)] = ["tack", "delayed:2"].map(again);
    println!("{tack} again for {answers} answers; {plain} for {plain_answers} with delayed:2");
    assert!(2 * tack < answers && answers + 1 >= plain_answers);
}

/// Paths 61072 and 30807: requests whose answers overflow a queue shorter than the path. BBR is
/// limited by the application and stays in its startup, so that each answer overflows the queue
/// again: 49 answers instead of 149, and 48 instead of 87. Losses out of a queue that stands,
/// answer by answer, end the startup. With queues a little longer and shorter `delayed:2` did the
/// same.
#[test]
fn answers_that_overflow_a_queue_each_time_end_the_startup_of_bbr() {
    let answers = |rate: &str, delay: &str, queue: &str, flow: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n{flow}\n"
        );
        flows(&text, 1)[0].requests.expect("it asks").completed
    };
    // The most answers that any queue allows are 149 and 87.
    let paths = [
        (
            "4610kbps",
            "12009us",
            ["8p", "9p", "10p", "12p", "14p"],
            "app = 'request:21174B,2170B'\nmss = 1000",
            149,
        ),
        (
            "2048kbps",
            "27095us",
            ["4p", "5p", "6p", "8p", "10p"],
            "app = 'request:189B,10078B,gap=14682us'\nmss = 536",
            87,
        ),
    ];
    for (rate, delay, queues, flow, most) in paths {
        for queue in queues {
            for ack in ["tack", "delayed:2"] {
                let answers = answers(rate, delay, queue, flow, ack);
                println!("{rate}, {queue}, {ack}: {answers} answers");
                assert!(
                    3 * answers >= 2 * most,
                    "{rate}, {queue}, {ack}: {answers} of {most}"
                );
            }
        }
    }
}

/// Losses at random keep BBR's startup where the application limits it: its rate samples say what
/// the application sends, and pacing at no more than that delays each answer by up to a round trip.
#[test]
fn random_losses_do_not_end_the_startup_of_an_application_limited_bbr() {
    let answers = |loss: f64, ack: &str| {
        let text = format!(
            "duration = '20s'\n[wired]\nrate = '50Mbps'\ndelay = '40ms'\nqueue = '1.0bdp'\nloss = {loss}\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\napp = 'request:30000B,500B'\n"
        );
        let done = |seed| flows(&text, seed)[0].requests.expect("it asks").completed;
        (1..=6).into_par_iter().map(done).sum::<u64>() as f64
    };
    for ack in ["tack", "delayed:2"] {
        // A round trip of 80 ms more for each answer would be 20 % fewer of them.
        let (few, many) = (answers(0.01, ack), answers(0.04, ack));
        println!("{ack}: {few} answers with 1 % lost, {many} with 4 %");
        assert!(many > 0.7 * few, "{ack}: {many}, {few}");
    }
}
