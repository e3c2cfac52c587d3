//! Each example ends by itself, and well. `many` measures, and is run by hand.

#![allow(
    unreachable_pub,
    reason = "what is the root of an example is a module here"
)]

#[path = "../examples/controller.rs"]
mod controller;
#[path = "../examples/copy.rs"]
mod copy;
#[path = "../examples/echo.rs"]
mod echo;
#[path = "../examples/policy.rs"]
mod policy;
#[path = "../examples/secure_echo.rs"]
mod secure_echo;
#[path = "../examples/simulate.rs"]
mod simulate;

#[test]
fn a_controller_of_ones_own_fills_the_path() {
    controller::main().unwrap();
}

#[test]
fn a_file_is_copied() {
    copy::main().unwrap();
}

#[test]
fn an_echo_comes_back() {
    echo::main().unwrap();
}

#[test]
fn an_encrypted_echo_comes_back() {
    secure_echo::main().unwrap();
}

#[test]
fn a_policy_of_ones_own_sends_fewer_acknowledgements() {
    policy::main().unwrap();
}

#[test]
fn a_simulation_runs_from_code() {
    simulate::main().unwrap();
}
