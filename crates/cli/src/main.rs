//! `tack`: move files, measure a path, run simulations, emulate Wi-Fi.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "the program is where the clock is read"
)]

mod address;
mod args;
mod carrier;
mod dask;
mod demo;
mod discovery;
mod doctor;
mod emulate;
mod exit;
mod identity;
mod keyboard;
mod lab;
mod links;
mod manual;
mod meeting;
mod net;
mod observe;
mod peers;
mod perf;
mod printer;
mod progress;
mod signals;
mod sim;
mod state;
mod sweep;
mod transfer;
mod trust;
mod tunnel;
mod values;
mod volume;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use exit::{Exit, Failure};
use observe::{ObserveArgs, Watch};
use tokio::runtime;

fn main() -> ExitCode {
    // What `tack exec` starts itself as, inside of its namespaces.
    if let Some(code) = tunnel::within() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Like all our errors. Help and version, which are none, clap prints itself, and exits.
            let text = error.render().to_string();
            let Some(text) = text.strip_prefix("error: ") else {
                error.exit()
            };
            eprint!("tack: {text}");
            return Exit::Usage.into();
        }
    };
    if let Command::Exec(args) = cli.command {
        return match cli.log.begin().and_then(|()| exec(args)) {
            Ok(code) => code,
            Err(failure) => {
                eprintln!("tack: {failure}");
                tunnel::EXEC_FAILED.into()
            }
        };
    }
    let exit = match cli.log.begin().and_then(|()| run(cli.command)) {
        Ok(exit) => exit,
        Err(failure) if failure.is_broken_pipe() => Exit::Done,
        Err(failure) => {
            eprintln!("tack: {failure}");
            failure.exit
        }
    };
    exit.into()
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Send(args) => one_end("send", args.observe.clone(), transfer::send(args)),
        Command::Recv(args) => one_end("recv", args.observe.clone(), transfer::recv(args)),
        Command::Perf(args) => watched("perf", args.observe.clone(), perf::run(args)),
        Command::Serve(args) => {
            let control = Some(args.state.open()?.path().to_owned());
            let (program, observe) = ("serve", args.observe.clone());
            let socket = tunnel::inherited_socket()?;
            tunnel::raise_file_limit();
            within_runtime(observe::watched(
                Watch {
                    program,
                    args: &observe,
                    control,
                },
                tunnel::serve(args, socket),
            ))
        }
        Command::Doctor(args) => within_runtime(doctor::run(args)),
        Command::Status(args) => within_runtime(observe::status(args)),
        Command::Connect(args) => within_runtime(tunnel::connect(args)),
        Command::Forward(args) => {
            tunnel::raise_file_limit();
            watched("forward", args.observe.clone(), tunnel::forward(args))
        }
        Command::Proxy(args) => {
            tunnel::raise_file_limit();
            watched("proxy", args.observe.clone(), tunnel::proxy(args))
        }
        Command::Gateway(args) => {
            tunnel::raise_file_limit();
            let observe = args.observe.clone();
            watched("gateway", observe, tunnel::gateway(args))
        }
        // Its exit codes are its own: `main` has run it.
        Command::Exec(_) => Ok(Exit::Failed),
        Command::Id(args) => identity::id(&args),
        Command::Peers(args) => peers::peers(args),
        Command::Sim(args) => sim::run(&args),
        Command::Sweep(args) => within_runtime(sweep::run(args)),
        Command::Demo(args) => within_runtime(demo::run(args)),
        Command::Emulate(args) => within_runtime(emulate::run(args)),
        Command::Lab(command) => within_runtime(lab::run(command)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tack", &mut script);
            printer::write_stdout(&script)?;
            Ok(Exit::Done)
        }
        Command::Man { out } => manual::write(&out),
    }
}

/// `tack exec`: its namespaces are made before this process has threads.
fn exec(args: tunnel::ExecArgs) -> Result<ExitCode, Failure> {
    let inside = tunnel::enter(&args)?;
    // The command keeps the limit that it was started with: programs may rely on it (select(2)).
    tunnel::raise_file_limit();
    let watch = Watch {
        program: "exec",
        args: &args.observe.clone(),
        control: None,
    };
    within_runtime(observe::watched(watch, tunnel::exec(args, inside)))
}

/// Runs an asynchronous command that can be watched.
fn watched(
    program: &'static str,
    observe: ObserveArgs,
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    watched_by(
        runtime::Builder::new_multi_thread(),
        program,
        &observe,
        command,
    )
}

/// Runs one end of a transfer, which can be watched.
fn one_end(
    program: &'static str,
    observe: ObserveArgs,
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    // A separate thread reads and writes the files. With two processors that thread and the one of
    // the connection use both; more threads would only wake each other for each batch of segments.
    let processors = std::thread::available_parallelism();
    let runtime = if processors.is_ok_and(|processors| processors.get() > 2) {
        runtime::Builder::new_multi_thread()
    } else {
        runtime::Builder::new_current_thread()
    };
    watched_by(runtime, program, &observe, command)
}

fn watched_by(
    runtime: runtime::Builder,
    program: &'static str,
    args: &ObserveArgs,
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let watch = Watch {
        program,
        args,
        control: None,
    };
    within(runtime, observe::watched(watch, command))
}

/// Threads that may block. A transfer has one from its beginning to its end, and afterwards, before
/// its permit goes to the next, one that prints its summary: never two at a time. The rest is for
/// standard input, names to look up, and what the runtime itself needs; a transfer that had to wait
/// for a thread would be deaf to its sender.
const BLOCKING_THREADS: usize = transfer::MAX_TRANSFERS as usize + tunnel::MAX_LOOKUPS + 64;

/// Runs an asynchronous command. Threads that wait for something that never comes (standard input)
/// do not keep the program alive.
fn within_runtime<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    within(runtime::Builder::new_multi_thread(), command)
}

/// Runs an asynchronous command in a runtime of this kind.
fn within<T>(
    mut runtime: runtime::Builder,
    command: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = runtime
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("cannot start", error))?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}
