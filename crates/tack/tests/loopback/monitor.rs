//! Looking at connections from beside.

use tack::trace::Traced;
use tack::{Endpoint, Phase, Watching};
use tokio::io::AsyncWriteExt;

use crate::pair::{Pair, check_stream, within, write_stream};

const LEN: u64 = 300_000;

#[tokio::test]
async fn a_monitor_sees_connections_live_and_end_and_keeps_no_endpoint_open() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, server) = (
        pair.client.monitor(Watching::Counters),
        pair.server.monitor(Watching::Traces),
    );
    assert!(client.look().unwrap().is_empty());
    let (mut out, mut incoming) = pair.connect().await;
    let living = client.look().unwrap();
    assert_eq!(living.len(), 1);
    assert_eq!(living[0].phase, Phase::Open);
    assert_eq!(living[0].peer, pair.server.local_addr());
    assert_eq!(living[0].remote_port, tack::DEFAULT_PORT);
    within(async {
        tokio::join!(
            write_stream(&mut out, 1, LEN),
            check_stream(&mut incoming, 1, LEN)
        )
    })
    .await;
    let seen = server.look().unwrap();
    assert_eq!(seen[0].stats.bytes_read, LEN);
    // The receiver's side has the traces that were asked for, the other one none.
    let acks = seen[0].events.iter();
    let acks = acks.filter(|event| matches!(event.what, Traced::AckSent(_)));
    assert!(acks.count() > 0);
    assert!(client.look().unwrap()[0].events.is_empty());
    out.shutdown().await.unwrap();
    within(out.finished()).await.unwrap();
    drop((out, incoming));
    // How they ended is kept, even when the endpoints are gone.
    drop(pair);
    let mut departed = 0;
    while let Some(views) = client.look() {
        departed += views
            .iter()
            .filter(|it| it.phase == Phase::Departed)
            .count();
        assert!(
            views.iter().all(|view| view.stats.bytes_acked == LEN),
            "{views:?}"
        );
        tokio::task::yield_now().await;
    }
    assert!(departed > 0);
    assert_eq!(client.missed(), 0);
}
