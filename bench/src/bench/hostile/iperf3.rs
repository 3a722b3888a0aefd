//! The part of iperf3's control protocol that the attacks need: a 37-byte cookie, one-byte states, JSON with a
//! length prefix.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use landspeed_stats::SplitMix64;

use super::connect::{Visit, read_array, reset, unexpected};
use super::hold::{Held, Speech};
use super::landspeed::{HTTP, random_bytes};

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;

/// Announced length of a text sent byte by byte, bytes: iperf3 accepts at most 8 KiB.
const ANNOUNCED: u32 = 4_000;
/// Interval between the bytes of a slowly sent text.
const DRIP: Duration = Duration::from_millis(50);
/// Interval between the bytes of a slowly sent cookie or length.
const SLOW_DRIP: Duration = Duration::from_millis(500);

fn cookie(number: u64) -> [u8; 37] {
    let mut cookie = [0; 37];
    for (letter, digit) in cookie.iter_mut().zip(format!("{number:036}").bytes()) {
        *letter = digit;
    }
    cookie
}

fn expect(stream: &mut TcpStream, state: u8) -> io::Result<()> {
    match read_array(stream)? {
        [found] if found == state => Ok(()),
        [found] => Err(unexpected(&format!("state {} instead of {state}", found.cast_signed()))),
    }
}

/// Sends the cookie and waits until the server accepts this client's test.
fn greeted(visit: &Visit) -> io::Result<TcpStream> {
    let mut control = visit.connect_and_send(&cookie(visit.number))?;
    expect(&mut control, PARAM_EXCHANGE)?;
    Ok(control)
}

/// Starts a TCP test of this duration; returns its control and data connections.
fn started(visit: &Visit, seconds: u32) -> io::Result<(TcpStream, TcpStream)> {
    let mut control = greeted(visit)?;
    let wanted = format!(
        "{{\"tcp\":true,\"omit\":0,\"time\":{seconds},\"num\":0,\"blockcount\":0,\"parallel\":1,\"len\":131072,\
         \"pacing_timer\":1000,\"client_version\":\"3.12\"}}"
    );
    control.write_all(&(wanted.len() as u32).to_be_bytes())?;
    control.write_all(wanted.as_bytes())?;
    expect(&mut control, CREATE_STREAMS)?;
    let data = visit.connect_and_send(&cookie(visit.number))?;
    expect(&mut control, TEST_START)?;
    expect(&mut control, TEST_RUNNING)?;
    Ok((control, data))
}

/// Sends the cookie and then nothing.
pub fn silent_in_greeting(visit: &Visit) -> io::Result<Held> {
    Ok(Held::silent(visit.connect_and_send(&cookie(visit.number))?))
}

/// Sends the cookie one byte at a time.
pub fn drip_cookie(visit: &Visit) -> io::Result<Held> {
    Ok(Held::speaking(vec![visit.connect()?], Speech::drip(SLOW_DRIP, cookie(visit.number).to_vec())))
}

/// Sends the length of the parameters, and then the parameters, one byte at a time.
pub fn drip_length(visit: &Visit) -> io::Result<Held> {
    let script = ANNOUNCED.to_be_bytes().to_vec();
    Ok(Held::speaking(vec![greeted(visit)?], Speech::drip(SLOW_DRIP, script)))
}

/// Sends the parameters one byte at a time.
pub fn drip_parameters(visit: &Visit) -> io::Result<Held> {
    let mut control = greeted(visit)?;
    control.write_all(&ANNOUNCED.to_be_bytes())?;
    Ok(Held::speaking(vec![control], Speech::drip(DRIP, b"{".to_vec())))
}

/// Ends a test and sends its results one byte at a time.
pub fn drip_results(visit: &Visit) -> io::Result<Held> {
    // iperf3 closes the data connection itself; only the control connection shows whether the server still holds
    // the test.
    let (mut control, _data) = started(visit, 1)?;
    control.write_all(&[TEST_END])?;
    expect(&mut control, EXCHANGE_RESULTS)?;
    control.write_all(&ANNOUNCED.to_be_bytes())?;
    Ok(Held::speaking(vec![control], Speech::drip(DRIP, b"{".to_vec())))
}

/// Starts a test of one hour and sends one byte of data per second.
pub fn slow_test(visit: &Visit) -> io::Result<Held> {
    let (control, data) = started(visit, 3600)?;
    Ok(Held::speaking(vec![data, control], Speech::repeat(Duration::from_secs(1), vec![0])))
}

/// Starts a test and disconnects: after the cookie, after the start, or in the middle of its data.
pub fn vanish(visit: &Visit) -> io::Result<()> {
    if visit.number.is_multiple_of(3) {
        reset(greeted(visit)?);
        return Ok(());
    }
    let (control, mut data) = started(visit, 10)?;
    if visit.number % 3 == 2 {
        data.write_all(&[0; 16 * 1024])?;
    }
    reset(data);
    reset(control);
    Ok(())
}

/// Sends data that violates the protocol: random bytes, an HTTP request, a length of 2 GiB, text that is not
/// JSON.
pub fn junk(visit: &Visit) -> io::Result<()> {
    match visit.number % 4 {
        0 => drop(visit.connect_and_send(&random_bytes(visit.number, 4096))?),
        1 => drop(visit.connect_and_send(HTTP)?),
        2 => drop(greeted(visit)?.write_all(&0x7fff_ffff_u32.to_be_bytes())),
        _ => drop(greeted(visit)?.write_all(&[0, 0, 0, 2, b'{', 0xff])),
    }
    Ok(())
}

/// Fills a datagram: random bytes, or the message with which an iperf3 UDP stream starts.
pub fn datagram(random: &mut SplitMix64, bytes: &mut Vec<u8>) {
    bytes.clear();
    if random.below(2) == 0 {
        bytes.extend_from_slice(b"9876");
    } else {
        let length = 1 + random.below(1400);
        let word = random.below(u64::MAX);
        bytes.extend((0..length).map(|at| word.rotate_left((at % 64) as u32) as u8));
    }
}
