//! Two endpoints, each behind a device of its own, with the kernel as the router between.

use std::net::SocketAddr;

use crate::pattern::exchange;
use crate::world::{host, ip, isolated, options, sysctl};

#[test]
fn two_endpoints_over_the_kernels_routing_use_tack() {
    isolated(|| async {
        sysctl("ipv4/ip_forward", "1");
        sysctl("ipv6/conf/all/forwarding", "1");
        let (client, server) = (host(options(1)), host(options(2)));
        let listener = server.listen(80).unwrap();
        for address in ["10.77.2.2", "fd77:2::2"] {
            let connect = client.connect(SocketAddr::new(ip(address), 80));
            let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
            let (mut ours, (mut theirs, peer)) = (ours.unwrap(), theirs.unwrap());
            assert_eq!(peer, ours.local_addr());
            exchange(&mut ours, &mut theirs, 4 << 20).await;
            ours.finished().await.unwrap();
            theirs.finished().await.unwrap();
            for stats in [ours.stats(), theirs.stats()] {
                assert!(stats.acks_tack > 0, "{stats:?}");
                assert_eq!(stats.acks_delayed, 0, "{stats:?}");
            }
        }
        for endpoint in [client, server] {
            let stats = endpoint.carrier_stats();
            assert_eq!((stats.malformed, stats.send_failures), (0, 0), "{stats:?}");
        }
    });
}
