//! Requests about entries that the sender does not have (`--delete`).

use std::os::unix::ffi::OsStringExt;

use super::Receiver;
use crate::transfer::protocol::{Kind, Reply, Violation};
use crate::transfer::receiver::receive_error::ReceiveError;

impl Receiver<'_> {
    /// Reports what the sender does not have, one full report at most.
    pub(super) fn tell_extras(&mut self) -> Result<(), ReceiveError> {
        let unexpected = Violation::Unexpected(Kind::Extras);
        if !self.is_between() {
            return Err(unexpected.into());
        }
        self.session.wait_for_files();
        if let Some(mirror) = self.cursor.mirror.take() {
            self.extras = Some(mirror.extras().map_err(ReceiveError::Storage)?);
        }
        let extras = self.extras.as_mut().ok_or(unexpected)?;
        // Of a source that could not be read, or stored, as a whole nobody knows what it lacks.
        let (told, more) = if self.session.report().failed > 0 {
            (Vec::new(), false)
        } else {
            let told = extras.tell(&self.store.root);
            told.map_err(ReceiveError::Storage)?
        };
        for (number, extra) in told {
            self.session.wait_for_room();
            self.session.reply(Reply::Extra {
                number,
                is_dir: extra.is_dir,
                path: extra.path.into_os_string().into_vec(),
            });
        }
        self.session.wait_for_room();
        self.session.reply(Reply::ExtrasEnd { more });
        Ok(())
    }

    /// Removes an entry of the last report.
    pub(super) fn remove(&mut self, number: u64) -> Result<(), ReceiveError> {
        let extra = self
            .extras
            .as_mut()
            .filter(|_| !self.hello.dry_run)
            .and_then(|extras| extras.take(number))
            .ok_or(Violation::Unexpected(Kind::Remove))?;
        self.session.wait_for_room();
        let removed = self.cursor.remove(&extra);
        let message = match removed {
            Ok(()) => {
                self.session.removed(&extra.path);
                String::new()
            }
            Err(refused) => {
                let why = format!("cannot be removed: {}", refused.message);
                self.session.report().failure(&extra.path, &why);
                refused.message
            }
        };
        self.session.reply(Reply::Removed { number, message });
        Ok(())
    }
}
