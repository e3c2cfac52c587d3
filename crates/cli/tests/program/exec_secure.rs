//! `tack exec` and programs that encrypt themselves: curl and git by https, git, rsync and scp by
//! ssh. In network namespaces.

use std::fs;
use std::path::Path;

use crate::exec::{FAR_V4, SERVER, World, came_by_tack, met, two};
use crate::support::{Running, ssh, tree};

/// nginx, which shows the folders `www` and `served` to whoever trusts its certificate.
fn https(world: &World, nginx: &Path) -> Running {
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
    let line = format!("exec {} -c {here}/nginx.conf", nginx.display());
    let command = &mut world.shell(SERVER, &line);
    world.network.serving(SERVER, command, (FAR_V4, 443))
}

/// A server of ssh, and a key of the user that opens it.
fn ssh_server(world: &World) -> Running {
    let line = ssh::server(world.scratch.path(), FAR_V4, 22);
    world.ok("chown 65534:65534 user-key; touch known_hosts; chown 65534:65534 known_hosts");
    let command = &mut world.shell(SERVER, &line);
    world.network.serving(SERVER, command, (FAR_V4, 22))
}

#[test]
fn https_and_ssh_of_unmodified_programs_run_through_it() {
    if let Some(why) = tack_skip::lacks(&["openssl", "ssh", "scp", "ssh-keygen"]) {
        return tack_skip::skipped(why);
    }
    let nginx = tack_skip::path_of("nginx").or_else(|| ssh::in_sbin("nginx"));
    let (Some(nginx), Some(_)) = (nginx, ssh::sshd()) else {
        return tack_skip::skipped("no nginx, or no sshd");
    };
    let Some(world) = two() else { return };
    let _service = met(&world);
    world.ok(
        "git init -q -b main repository && cd repository && cp ../www/file one && git add one && \
         git -c user.name=N -c user.email=n@test commit -qm one && git update-server-info && \
         chmod -R a+rX .",
    );
    world.ok("mkdir -p files/deep && cp www/file files/deep/ && chmod 640 files/deep/file");
    let _https = https(&world, &nginx);
    let _ssh = ssh_server(&world);
    let here = world.scratch.path().display();
    let options = ssh::options(world.scratch.path());
    let script = format!(
        "set -e
        export GIT_SSL_CAINFO=../certificate
        export GIT_SSH_COMMAND='ssh {options}'
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
