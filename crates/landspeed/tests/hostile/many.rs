//! Many concurrent tests on one server.

use crate::hostile::common::{Server, TIMEOUT_S, finish};

#[test]
fn sixteen_concurrent_tests_balance_in_each_direction() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    for wave in [&["-t", "0.5"][..], &["-t", "0.5", "-R"]] {
        let clients: Vec<_> = (0..16).map(|_| server.begin(wave)).collect();
        for client in clients {
            finish(client.end(2 * TIMEOUT_S)).assert_clean();
        }
    }
    server.wait_for_resources(idle);
}

#[test]
fn sixty_four_concurrent_tests_balance() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    // Low rates: sixteen tests already load the CPUs; this one is about the number.
    let kinds: [&[&str]; 4] = [
        &["-t", "1", "-b", "2m"],
        &["-t", "1", "-b", "2m", "-R"],
        &["-t", "1", "-b", "2m", "-u"],
        &["-t", "1", "--rr", "--rate", "500"],
    ];
    let clients: Vec<_> = (0..64).map(|i| server.begin(kinds[i % 4])).collect();
    for client in clients {
        finish(client.end(2 * TIMEOUT_S)).assert_clean();
    }
    server.wait_for_resources(idle);
}
