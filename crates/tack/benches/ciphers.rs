//! AES-128-GCM of records of 16 KiB by AWS-LC and by ring, GB/s on one processor, in turns. The
//! library takes ring's where the processor has VAES and no AVX-512.

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("only on x86-64 is there a choice");
}

#[cfg(target_arch = "x86_64")]
fn main() {
    use std::arch::is_x86_feature_detected;
    println!(
        "VAES: {}, AVX-512: {}",
        is_x86_feature_detected!("vaes"),
        is_x86_feature_detected!("avx512f")
    );
    for round in 1..=3 {
        let [seal, open] = libraries::aws_lc();
        println!("round {round}: AWS-LC seals {seal:.2}, opens {open:.2} GB/s");
        let [ring_seal, ring_open] = libraries::ring();
        println!("round {round}: ring seals {ring_seal:.2}, opens {ring_open:.2} GB/s");
        println!(
            "round {round}: ratios {:.2} and {:.2}",
            ring_seal / seal,
            ring_open / open
        );
    }
}

/// Each writes and reads the same records with its own functions.
#[cfg(target_arch = "x86_64")]
mod libraries {
    use std::hint::black_box;
    use std::time::Instant;

    const RECORD: usize = 1 << 14;
    const ROUNDS: u64 = 20_000;
    const TAG: usize = 16;

    /// GB/s of sealing, and of opening.
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    fn measure(
        mut seal: impl FnMut([u8; 12], &[u8], &mut [u8]),
        mut open: impl FnMut([u8; 12], &[u8], &mut [u8]),
    ) -> [f64; 2] {
        let text = vec![1; RECORD];
        let mut sealed = vec![0; RECORD + TAG];
        let mut opened = vec![0; RECORD];
        let rate = |started: Instant| {
            ROUNDS as f64 * RECORD as f64 / started.elapsed().as_secs_f64() / 1e9
        };
        let started = Instant::now();
        for number in 0..ROUNDS {
            let mut nonce = [0; 12];
            nonce[..8].copy_from_slice(&number.to_le_bytes());
            seal(nonce, &text, black_box(&mut sealed));
        }
        let sealing = rate(started);
        let nonce = [9; 12];
        seal(nonce, &text, &mut sealed);
        let started = Instant::now();
        for _ in 0..ROUNDS {
            open(nonce, &sealed, black_box(&mut opened));
        }
        assert_eq!(opened, text);
        [sealing, rate(started)]
    }

    /// In pieces that the C library does not copy by `rep movsb`.
    fn copy(from: &[u8], to: &mut [u8]) {
        for (from, to) in from.chunks(2048).zip(to.chunks_mut(2048)) {
            to.copy_from_slice(from);
        }
    }

    macro_rules! key {
        ($library:ident) => {{
            use $library::aead;
            let key = aead::UnboundKey::new(&aead::AES_128_GCM, &[7; 16]).expect("a key");
            aead::LessSafeKey::new(key)
        }};
    }

    pub(super) fn aws_lc() -> [f64; 2] {
        use aws_lc_rs::aead::{Aad, Nonce};
        let key = key!(aws_lc_rs);
        measure(
            |nonce, text, out| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let (out, tag) = out.split_at_mut(RECORD);
                key.seal_out_of_place_scatter(nonce, Aad::empty(), text, out, &[], tag)
                    .expect("sealed");
            },
            |nonce, sealed, out| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let (text, tag) = sealed.split_at(RECORD);
                key.open_separate_gather(nonce, Aad::empty(), text, tag, out)
                    .expect("opened");
            },
        )
    }

    pub(super) fn ring() -> [f64; 2] {
        use ring::aead::{Aad, Nonce, Tag};
        let key = key!(ring);
        measure(
            |nonce, text, out| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let (out, end) = out.split_at_mut(RECORD);
                copy(text, out);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), out);
                end.copy_from_slice(tag.expect("sealed").as_ref());
            },
            |nonce, sealed, out| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let (text, tag) = sealed.split_at(RECORD);
                let tag = Tag::try_from(tag).expect("a tag");
                copy(text, out);
                key.open_in_place_separate_tag(nonce, Aad::empty(), tag, out, 0..)
                    .expect("opened");
            },
        )
    }
}
