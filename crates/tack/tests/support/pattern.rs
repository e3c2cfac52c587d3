//! Bytes that show where they belong, written and checked.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Byte number `position` of the stream named `seed`: a shifted, repeated or missing byte shows.
pub(crate) fn byte(seed: u64, position: u64) -> u8 {
    let mixed =
        (position ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 56) as u8
}

/// Writes `len` bytes of the stream named `seed` and ends it.
pub(crate) async fn write_stream(writer: &mut (impl AsyncWrite + Unpin), seed: u64, len: u64) {
    let mut at = 0;
    while at < len {
        let end = len.min(at + (32 << 10));
        let block: Vec<u8> = (at..end).map(|position| byte(seed, position)).collect();
        writer.write_all(&block).await.unwrap();
        at = end;
    }
    writer.shutdown().await.unwrap();
}

/// Reads to the end, which must be there after `len` right bytes.
pub(crate) async fn check_stream(reader: &mut (impl AsyncRead + Unpin), seed: u64, len: u64) {
    let mut block = vec![0; 64 << 10];
    let mut at = 0;
    loop {
        let got = reader.read(&mut block).await.unwrap();
        if got == 0 {
            break;
        }
        for read in &block[..got] {
            assert_eq!(*read, byte(seed, at), "byte {at}");
            at += 1;
        }
    }
    assert_eq!(at, len, "bytes before the end");
}

/// Sends `len` bytes each way between two ends of a connection at once, and ends both streams.
pub(crate) async fn exchange(
    one: &mut (impl AsyncRead + AsyncWrite + Unpin),
    other: &mut (impl AsyncRead + AsyncWrite + Unpin),
    len: u64,
) {
    let (mut one_reader, mut one_writer) = tokio::io::split(one);
    let (mut other_reader, mut other_writer) = tokio::io::split(other);
    tokio::join!(
        write_stream(&mut one_writer, 1, len),
        check_stream(&mut other_reader, 1, len),
        write_stream(&mut other_writer, 2, len),
        check_stream(&mut one_reader, 2, len),
    );
}
