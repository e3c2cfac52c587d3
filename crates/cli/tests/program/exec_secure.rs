//! `tack exec` and programs that encrypt themselves: curl and git by https, git, rsync and scp by
//! ssh. In network namespaces.

use std::fs;
use std::path::PathBuf;

use crate::exec::{FAR_V4, SERVER, World, came_by_tack, met, two};
use crate::support::{Running, tree};

/// nginx, which shows the folders `www` and `served` to whoever trusts its certificate.
fn https(world: &World) -> Running {
    world.ok(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
         -subj /CN=www.test -addext subjectAltName=DNS:www.test -keyout tls-key -out certificate; \
         chmod a+r certificate",
    );
    let here = world.scratch.path().display();
    let config = format!(
        "daemon off; master_process off; user root; pid {here}/pid; error_log {here}/errors;
         events {{}}
         http {{ access_log off; client_body_temp_path {here}/body;
           server {{ listen {FAR_V4}:443 ssl; root {here};
             ssl_certificate certificate; ssl_certificate_key tls-key; }} }}"
    );
    fs::write(world.path("nginx.conf"), config).unwrap();
    let line = format!("exec nginx -c {here}/nginx.conf");
    let command = &mut world.shell(SERVER, &line);
    world.network.serving(SERVER, command, (FAR_V4, 443))
}

/// A server of ssh, and a key of the user that opens it.
fn ssh(world: &World) -> Running {
    world.ok(
        "ssh-keygen -q -t ed25519 -N '' -f host-key; ssh-keygen -q -t ed25519 -N '' -f home/key; \
         cp home/key.pub authorized; chown 65534:65534 home/key home/key.pub",
    );
    // sshd wants this folder, which an unbooted machine lacks.
    let _ = fs::create_dir_all("/run/sshd");
    let here = world.scratch.path().display();
    let config = format!(
        "ListenAddress {FAR_V4}\nHostKey {here}/host-key\nAuthorizedKeysFile {here}/authorized\n\
         PermitRootLogin prohibit-password\nStrictModes no\nUsePAM no\nPidFile none\n\
         Subsystem sftp internal-sftp\n"
    );
    fs::write(world.path("sshd_config"), config).unwrap();
    let line = format!("exec /usr/sbin/sshd -D -e -f {here}/sshd_config");
    let command = &mut world.shell(SERVER, &line);
    world.network.serving(SERVER, command, (FAR_V4, 22))
}

#[test]
fn https_and_ssh_of_unmodified_programs_run_through_it() {
    for program in ["/usr/sbin/sshd", "/usr/sbin/nginx"] {
        if !PathBuf::from(program).exists() {
            return tack_skip::skipped(format_args!("no {program}"));
        }
    }
    if let Some(why) = tack_skip::lacks(&["openssl", "ssh", "scp", "ssh-keygen"]) {
        return tack_skip::skipped(why);
    }
    let Some(world) = two() else { return };
    let _service = met(&world);
    world.ok(
        "git init -q -b main repository && cd repository && cp ../www/file one && git add one && \
         git -c user.name=N -c user.email=n@test commit -qm one && git update-server-info && \
         chmod -R a+rX .",
    );
    world.ok("mkdir -p files/deep && cp www/file files/deep/ && chmod 640 files/deep/file");
    let _https = https(&world);
    let _ssh = ssh(&world);
    let here = world.scratch.path().display();
    let script = format!(
        "set -e
        export GIT_SSL_CAINFO=../certificate
        export GIT_SSH_COMMAND='ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=accept-new \
          -o UserKnownHostsFile=known -o LogLevel=ERROR -o ControlPath=none -i '$PWD/key
        curl -sS --fail --cacert ../certificate -o by-https https://www.test/www/file
        ! curl -sS --fail -o untrusted https://www.test/www/file 2>refused
        git clone -q https://www.test/repository/.git https-clone
        git clone -q ssh://root@www.test{here}/repository ssh-clone
        rsync -a -e \"$GIT_SSH_COMMAND\" root@www.test:{here}/files/ copy/
        scp -q ${{GIT_SSH_COMMAND#ssh}} by-https root@www.test:{here}/by-scp
        $GIT_SSH_COMMAND root@www.test 'exit 42' || echo $?\n"
    );
    fs::write(world.path("script.sh"), script).unwrap();
    world.ok("chmod a+r script.sh");
    let ended = world.user_ok("exec ../tack exec server: -- sh ../script.sh");
    assert_eq!(ended.stdout, "42\n", "{ended:?}");
    let served = fs::read(world.path("www/file")).unwrap();
    let copies = [
        "home/by-https",
        "home/https-clone/one",
        "home/ssh-clone/one",
        "by-scp",
    ];
    for copy in copies {
        assert!(fs::read(world.path(copy)).unwrap() == served, "{copy}");
    }
    assert_eq!(tree(&world.path("home/copy")), tree(&world.path("files")));
    let refused = fs::read_to_string(world.path("home/refused")).unwrap();
    assert!(refused.contains("certificate"), "{refused}");
    came_by_tack(&world, SERVER);
}
