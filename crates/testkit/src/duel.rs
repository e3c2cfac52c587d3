//! A transfer each way with an adversary on each direction, from the SYN to the close: whatever
//! they do, the invariants hold, and once they are gone everything ends within bounded virtual
//! time.

use std::time::Duration;

use tack_tcp::config::KeepAlive;
use tack_tcp::{CloseReason, Config};

use crate::adversary::{Adversary, Harm, Step};
use crate::model::Model;
use crate::pair::{BEGIN, Pair};
use crate::side::Side;

/// How long the adversaries stay at most.
const STAY: Duration = Duration::from_secs(60);
/// Time that the transfer needs at most on the good path after them, whatever the state they leave
/// behind: a timeout that has backed off is as long as they were there, and a few follow until the
/// windows have grown again.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same where both ends may believe different things for good: until one of them gives up.
const GIVING_UP: Duration = Duration::from_secs(900);

/// What is transferred against whom.
#[derive(Clone, Debug)]
pub struct Duel {
    /// Settings of the client and of the server. Timeouts that give up are set as needed.
    pub configs: [Config; 2],
    /// Bytes that the client and the server write.
    pub bytes: [u64; 2],
    /// What is done to the segments of the client and of the server.
    pub scripts: [Vec<Step>; 2],
    /// Of the random faults besides.
    pub seed: u64,
    /// Probability that a segment gets lost besides, as long as the adversaries are there.
    pub loss: f64,
}

impl Duel {
    /// The worst that is done.
    pub fn harm(&self) -> Harm {
        let steps = self.scripts.iter().flatten();
        steps.map(Step::harm).max().unwrap_or(Harm::Path)
    }

    /// Runs it.
    ///
    /// # Panics
    /// When an invariant breaks, when something does not end, or does not end well although it has
    /// to.
    pub fn run(&self) {
        let harm = self.harm();
        let configs = self.configs.clone().map(|config| Config {
            // An end that waits for what never comes finds out by asking; one that may not give up
            // does not.
            keep_alive: (harm >= Harm::State).then_some(KeepAlive {
                idle: Duration::from_secs(30),
                interval: Duration::from_secs(5),
                probes: 5,
            }),
            user_timeout: (harm >= Harm::State).then_some(Duration::from_secs(100)),
            syn_retries: 30,
            ..config
        });
        let path = |script: &[Step]| Model {
            loss: self.loss,
            adversary: Some(Adversary::new(script.to_vec())),
            ..Model::default()
        };
        let [forward, backward] = [path(&self.scripts[0]), path(&self.scripts[1])];
        let mut pair = Pair::new(self.seed, forward, backward);
        if harm == Harm::Content {
            pair.expect_other_content();
        }
        pair.listen(&configs[1]);
        pair.connect(&configs[0]);
        pair.send(Side::Client, self.bytes[0]);
        pair.finish(Side::Client);
        let is_over = |pair: &mut Pair| self.serve(pair);
        if !pair.run_until(STAY, |pair| is_over(pair) || Self::are_gone(pair)) {
            for side in [Side::Client, Side::Server] {
                let adversary = &mut pair.model(side).adversary;
                adversary.iter_mut().for_each(Adversary::leave);
            }
        }
        let last_deed = [Side::Client, Side::Server]
            .into_iter()
            .filter_map(|side| pair.model(side).adversary.as_ref()?.last_deed())
            .max();
        for side in [Side::Client, Side::Server] {
            pair.model(side).loss = 0.0;
        }
        // What backed off while they were there comes back within the same time again, doubled.
        // Three timeouts as long pass until reports that are refused end TACK.
        let backed_off = last_deed.map_or(Duration::ZERO, |at| at.saturating_since(BEGIN));
        let limit = match harm {
            Harm::Path => PATIENCE + 2 * backed_off.min(STAY),
            Harm::Words => PATIENCE + 4 * backed_off.min(STAY),
            Harm::State | Harm::Content => GIVING_UP,
        };
        let over = pair.run_until(limit, is_over);
        self.judge(&mut pair, harm, over);
    }

    fn are_gone(pair: &mut Pair) -> bool {
        [Side::Client, Side::Server].into_iter().all(|side| {
            let adversary = &pair.model(side).adversary;
            adversary.as_ref().is_none_or(Adversary::is_done)
        })
    }

    /// The server's application answers once it is there. True when both are closed, or got all
    /// there is.
    fn serve(&self, pair: &mut Pair) -> bool {
        let ids: Vec<_> = pair.apps(Side::Server).map(|app| app.id).collect();
        for (index, id) in ids.iter().enumerate() {
            let app = pair.apps(Side::Server).find(|app| app.id == *id);
            if app.is_some_and(|app| !app.finishing) {
                // The others were opened by replayed SYNs, and have no data to send.
                let bytes = if index == 0 { self.bytes[1] } else { 0 };
                pair.send_on(Side::Server, *id, bytes);
                pair.finish_on(Side::Server, *id);
            }
        }
        let mut apps = pair.apps(Side::Client).chain(pair.apps(Side::Server));
        // TIME-WAIT is not waited for: after its last byte a side may have no peer left.
        apps.all(|app| app.ended || app.closed().is_some())
            && (!ids.is_empty() || pair.apps(Side::Client).all(|app| app.closed().is_some()))
    }

    fn judge(&self, pair: &mut Pair, harm: Harm, over: bool) {
        let states: Vec<_> = [Side::Client, Side::Server]
            .into_iter()
            .flat_map(|side| pair.apps(side).cloned().collect::<Vec<_>>())
            .collect();
        assert!(
            over,
            "not over {:?} after the beginning\n{states:#?}\n{}",
            pair.elapsed(),
            pair.trace()
        );
        if harm >= Harm::State {
            return;
        }
        let (client, server) = (
            pair.app(Side::Client).clone(),
            pair.app(Side::Server).clone(),
        );
        for (reader, bytes) in [(&client, self.bytes[1]), (&server, self.bytes[0])] {
            let well = reader
                .closed()
                .is_none_or(|reason| reason == CloseReason::Graceful);
            assert!(
                well && reader.ended && reader.read == bytes,
                "{bytes} bytes should have been read\n{states:#?}\n{}",
                pair.trace()
            );
        }
    }
}
