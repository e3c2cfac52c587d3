//! A stream in its steady state takes no memory from the heap for a segment.

use tack::{Endpoint, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn transfer(from: &mut Stream, to: &mut Stream, len: usize) {
    let writing = async {
        let block = [1; 64 << 10];
        for _ in 0..len / block.len() {
            from.write_all(&block).await.unwrap();
        }
    };
    let reading = async {
        let mut block = [0; 64 << 10];
        let mut got = 0;
        while got < len {
            got += to.read(&mut block).await.unwrap();
        }
    };
    tokio::join!(writing, reading);
}

#[test]
fn a_steady_stream_does_not_allocate_per_segment() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut client, mut server) = runtime.block_on(async {
        let server = Endpoint::builder().build().unwrap();
        let client = Endpoint::builder().build().unwrap();
        let listener = server.listen(tack::DEFAULT_PORT).unwrap();
        let address = server.local_addr();
        let (client, server) = tokio::join!(client.connect(address), listener.accept());
        let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
        // Buffers, logs and queues take their size.
        transfer(&mut client, &mut server, 64 << 20).await;
        (client, server)
    });
    let before = client.stats().data_segments;
    let counted = allocation_counter::measure(|| {
        runtime.block_on(transfer(&mut client, &mut server, 64 << 20));
    });
    let segments = client.stats().data_segments - before;
    assert!(segments > 40_000);
    // Both sides run here. A buffer may still grow when the machine makes one side wait for long.
    assert!(
        counted.count_total < segments / 100,
        "{} allocations for {segments} segments",
        counted.count_total
    );
    println!(
        "{} allocations, {} bytes, {segments} segments",
        counted.count_total, counted.bytes_total
    );
}
