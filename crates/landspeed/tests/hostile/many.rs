//! Many tests at once on one server.

use crate::common::{PATIENCE_S, Server, finish};

#[test]
fn sixteen_at_a_time_four_times_over_all_balance() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    for wave in 0..4 {
        let direction: &[&str] = if wave % 2 == 0 { &[] } else { &["-R"] };
        let clients: Vec<_> = (0..16).map(|_| server.begin(&[&["-t", "1"], direction].concat())).collect();
        for client in clients {
            finish(client.end(2 * PATIENCE_S)).assert_clean();
        }
    }
    server.settles_to(idle);
}

#[test]
fn sixty_four_at_once_all_balance() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    let kinds: [&[&str]; 4] =
        [&["-t", "1"], &["-t", "1", "-R"], &["-t", "1", "-u", "-b", "2m"], &["-t", "1", "--rr"]];
    let clients: Vec<_> = (0..64).map(|i| server.begin(kinds[i % 4])).collect();
    for client in clients {
        finish(client.end(2 * PATIENCE_S)).assert_clean();
    }
    server.settles_to(idle);
}
