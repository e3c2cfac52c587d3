//! The codec from outside, subject by subject. One test binary: it is linked once.

mod acks;
mod contexts;
mod examples;
mod hostile;
mod loss;
mod sizes;
mod streams;
mod vectors;
