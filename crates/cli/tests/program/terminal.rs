//! What a person at a terminal sees and types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::meeting::Side;
use crate::support::{self, Running};

/// How long a test waits for words of the program.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose standard input, output and error are a terminal.
pub(crate) struct AtTerminal {
    pub(crate) child: Child,
    keyboard: File,
    screen: Arc<(Mutex<String>, Condvar)>,
}

impl AtTerminal {
    pub(crate) fn start(command: &mut Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
        let size = Winsize {
            ws_row: 50,
            ws_col: 160,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&theirs, size).unwrap();
        let child = command
            .stdin(Stdio::from(theirs.try_clone().unwrap()))
            .stdout(Stdio::from(theirs.try_clone().unwrap()))
            .stderr(Stdio::from(theirs))
            .spawn()
            .unwrap();
        let keyboard = File::from(ours);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            // It ends with an error when the program does.
            while let Ok(len @ 1..) = output.read(&mut piece) {
                bytes.extend_from_slice(&piece[..len]);
                *seen.0.lock().unwrap() = String::from_utf8_lossy(&bytes).replace('\r', "");
                seen.1.notify_all();
            }
        });
        Self {
            child,
            keyboard,
            screen,
        }
    }

    /// What `find` finds on the screen, once it does.
    pub(crate) fn see<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let (screen, more) = &*self.screen;
        let mut found = None;
        let guard = screen.lock().unwrap();
        let (text, _) = more
            .wait_timeout_while(guard, PATIENCE, |text| {
                found = find(text);
                found.is_none()
            })
            .unwrap();
        found.unwrap_or_else(|| panic!("no {what} on the screen:\n{text}"))
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").unwrap();
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The word after `before` in `text`, if a line end follows it.
fn word_after(text: &str, before: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    let (line, _) = rest.split_once('\n')?;
    line.split_whitespace().next().map(str::to_owned)
}

/// A code with the number of `code` and other words.
fn wrong(code: &str) -> String {
    let number = code.split('-').next().unwrap();
    if code.contains("hurricane") {
        format!("{number}-tobacco-tiger")
    } else {
        format!("{number}-hurricane-tiger")
    }
}

/// What a QR code says whose modules are block characters, light ones on a dark ground.
fn decode_qr_code(screen: &str) -> Option<String> {
    let drawn = |line: &&str| {
        let mut letters = line.chars();
        !line.is_empty() && letters.all(|letter| matches!(letter, ' ' | '█' | '▀' | '▄'))
    };
    let lines: Vec<Vec<char>> = screen
        .lines()
        .filter(drawn)
        .map(|line| line.chars().collect())
        .collect();
    const SCALE: usize = 4;
    let width = lines.iter().map(Vec::len).max()?;
    let brightness = |x: usize, y: usize| {
        let (x, y) = (x / SCALE, y / SCALE);
        let letter = lines[y / 2].get(x).copied().unwrap_or(' ');
        let is_lit = match letter {
            '█' => true,
            '▀' => y % 2 == 0,
            '▄' => y % 2 == 1,
            _ => false,
        };
        if is_lit { 255 } else { 0 }
    };
    let (width, height) = (width * SCALE, lines.len() * 2 * SCALE);
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, brightness);
    let grids = image.detect_grids();
    let (_, content) = grids.first()?.decode().ok()?;
    Some(content)
}

#[test]
fn a_terminal_shows_the_ticket_as_a_qr_code_and_enter_makes_a_new_code() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.path("file");
    std::fs::write(&file, "content").unwrap();
    let file = file.to_str().unwrap();
    let arguments = ["recv", "--dir", "inbox", "--listen", "127.0.0.1:0"];
    let mut receiver = AtTerminal::start(&mut alice.command(&arguments));
    let ticket = receiver.see("QR code", decode_qr_code).to_lowercase();
    let shown = receiver.see("ticket", |text| {
        word_after(text, "on this machine   tack send PATH")
    });
    assert_eq!(ticket, shown);
    let by_address = "by address        tack send PATH";
    let address = receiver.see("address", |text| word_after(text, by_address));
    let mut code = receiver.see("code", |text| word_after(text, "--code"));
    // Without Enter, the pauses after so many used codes are 310 s together.
    for used in 1..=5 {
        let refused = bob.run(&["send", file, &address, "--code", &wrong(&code)]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        receiver.see("question", |text| {
            (text.matches("or when you press Enter").count() == used).then_some(())
        });
        receiver.type_line("");
        code = receiver.see("new code", |text| {
            let mut codes = text.split("the new code is ").skip(used);
            codes
                .next()?
                .split_once('\n')
                .map(|(code, _)| code.trim().to_owned())
        });
    }
    let sent = bob.run(&["send", file, &address, "--code", &code]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let stored = std::fs::read(alice.path("inbox").join("file")).unwrap();
    assert_eq!(stored, b"content");
    // The ticket is valid in capitals, as the QR code has it.
    std::fs::write(file, "new content").unwrap();
    let sent = bob.run(&["send", file, &ticket.to_uppercase(), "--name", "other"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let stored = std::fs::read(alice.path("inbox").join("other")).unwrap();
    assert_eq!(stored, b"new content");
}

#[test]
fn a_question_of_a_lost_connection_is_withdrawn() {
    let scratch = tempfile::tempdir().unwrap();
    let inbox = scratch.path().join("inbox");
    for name in ["first", "second"] {
        std::fs::write(scratch.path().join(name), name).unwrap();
    }
    let mut command = support::tack();
    command
        .args(["recv", "--insecure", "--confirm", "--listen"])
        .args(["127.0.0.1:0", "--dir"])
        .arg(&inbox);
    let mut receiver = AtTerminal::start(&mut command);
    let address = receiver.see("address", |text| word_after(text, "listening on "));
    let address = address.trim_end_matches(',');
    let send = |name: &str| {
        let mut command = support::tack();
        command.args(["send", "--insecure", "--connect-timeout", "60s"]);
        Running::start(command.arg(scratch.path().join(name)).arg(address))
    };
    let asked = |count: usize| {
        move |text: &str| (text.matches("take it? [y/N]").count() == count).then_some(())
    };
    let mut first = send("first");
    receiver.see("question", asked(1));
    let second = send("second");
    first.child.kill().unwrap();
    receiver.see("withdrawal", |text| {
        text.contains("(withdrawn: the connection was lost)")
            .then_some(())
    });
    receiver.see("question", asked(2));
    receiver.type_line("y");
    let sent = second.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(inbox.join("second").exists() && !inbox.join("first").exists());
}
