//! The program as people and scripts run it. One test binary: it is linked once, and what mostly
//! waits does so while others work.

mod again;
mod broken_path;
mod browser;
mod carrier;
mod demo;
mod discovery;
mod doctor;
mod emulate;
mod emulate_hosts;
mod endings;
mod entries;
mod exec;
mod faults;
mod gateway;
mod hostile;
mod inbox;
mod interface;
mod intruder;
mod keys;
mod lab;
mod meeting;
mod memory;
mod mirror;
mod observe;
mod output;
mod pages;
mod perf;
mod proxy;
mod real_paths;
mod real_programs;
mod rebinding;
mod resume;
mod serve;
mod sim;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod transfer;
mod tunnel;
mod tunnel_talks;
mod turns;
mod unchanged_talks;
mod unit;
mod wifi;
mod words;
