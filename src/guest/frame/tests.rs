use proptest::prelude::*;

use super::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn program() -> impl Strategy<Value = Program> {
    let list = || prop::collection::vec(bytes(), 0..4);
    (list(), list(), bytes()).prop_map(|(argv, env, cwd)| Program { argv, env, cwd })
}

fn how() -> impl Strategy<Value = Termination> {
    prop_oneof![
        any::<i32>().prop_map(Termination::Exited),
        any::<i32>().prop_map(Termination::Signaled),
        Just(Termination::TimedOut),
        any::<i32>().prop_map(Termination::ShellDied),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![Just(Limit::Unknown), Just(Limit::Own), Just(Limit::Host)]
}

fn to_guest() -> impl Strategy<Value = ToGuest> {
    let n = any::<u32>;
    prop_oneof![
        (n(), bytes(), bytes()).prop_map(|(version, workdir, home)| ToGuest::Boot { version, workdir, home }),
        (n(), any::<u64>(), any::<u64>(), bytes()).prop_map(|(id, timeout_ms, max_output, command)| {
            ToGuest::Shell { id, timeout_ms, max_output, command }
        }),
        (n(), any::<u64>(), any::<u64>(), program()).prop_map(|(id, timeout_ms, max_output, program)| {
            ToGuest::Spawn { id, timeout_ms, max_output, program }
        }),
        (n(), any::<u16>(), any::<u16>(), program()).prop_map(|(id, rows, cols, program)| ToGuest::Pty {
            id,
            rows,
            cols,
            program
        }),
        (n(), any::<u16>(), any::<u16>()).prop_map(|(id, rows, cols)| ToGuest::Resize { id, rows, cols }),
        (n(), n(), bytes()).prop_map(|(id, mode, path)| ToGuest::PutFile { id, mode, path }),
        (n(), any::<u64>(), bytes()).prop_map(|(id, max, path)| ToGuest::GetFile { id, max, path }),
        (n(), bytes()).prop_map(|(id, path)| ToGuest::Listen { id, path }),
        (n(), n(), bytes()).prop_map(|(id, call, bytes)| ToGuest::Reply { id, call, bytes }),
        (n(), n()).prop_map(|(id, call)| ToGuest::ReplyEnd { id, call }),
        (n(), bytes()).prop_map(|(id, bytes)| ToGuest::Data { id, bytes }),
        n().prop_map(|id| ToGuest::End { id }),
        n().prop_map(|id| ToGuest::Cancel { id }),
        n().prop_map(|id| ToGuest::PtyStateRequest { id }),
        n().prop_map(|id| ToGuest::KillAll { id }),
        Just(ToGuest::Paused),
        any::<u64>().prop_map(|micros| ToGuest::Resumed { micros }),
        (n(), n(), n(), prop::collection::vec(n(), 0..4), bytes(), bytes()).prop_map(
            |(id, uid, gid, groups, name, home)| ToGuest::Account {
                id,
                account: Account { uid, gid, groups, name, home }
            }
        ),
    ]
}

fn to_host() -> impl Strategy<Value = ToHost> {
    let n = any::<u32>;
    let stream = prop_oneof![Just(Stream::Out), Just(Stream::Err)];
    prop_oneof![
        n().prop_map(|version| ToHost::Hello { version }),
        n().prop_map(|id| ToHost::Done { id }),
        (n(), any::<bool>(), any::<u64>()).prop_map(|(id, at_prompt, youngest)| ToHost::PtyState {
            id,
            at_prompt,
            youngest
        }),
        (n(), any::<i32>(), limit(), bytes()).prop_map(|(id, errno, limit, message)| ToHost::Failed {
            id,
            errno,
            limit,
            message
        }),
        (n(), stream, bytes()).prop_map(|(id, stream, bytes)| ToHost::Chunk { id, stream, bytes }),
        (n(), how(), any::<bool>(), any::<u64>(), any::<u64>()).prop_map(
            |(id, how, restarted, bytes, micros)| ToHost::ShellDone { id, how, restarted, bytes, micros }
        ),
        (n(), how(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
            |(id, how, stdout, stderr, micros)| ToHost::ProcessDone { id, how, stdout, stderr, micros }
        ),
        (n(), n(), bytes()).prop_map(|(id, call, bytes)| ToHost::Call { id, call, bytes }),
        (n(), n()).prop_map(|(id, call)| ToHost::CallEnd { id, call }),
        (n(), n()).prop_map(|(id, call)| ToHost::CallClosed { id, call }),
    ]
}

/// Decodes all messages of a stream. It arrives in pieces of `piece` bytes.
fn read<M: Message>(stream: &[u8], piece: usize) -> Result<Vec<M>, FrameError> {
    let mut buffer = FrameBuffer::default();
    let mut messages = Vec::new();
    for bytes in stream.chunks(piece) {
        buffer.extend(bytes);
        while let Some(message) = buffer.next_message()? {
            messages.push(message);
        }
    }
    Ok(messages)
}

fn written<M: Message>(messages: &[M]) -> Vec<u8> {
    let mut stream = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut stream));
    stream
}

proptest! {
    #[test]
    fn messages_to_the_guest_round_trip(messages in prop::collection::vec(to_guest(), 0..6), piece in 1usize..50) {
        prop_assert_eq!(read(&written(&messages), piece), Ok(messages));
    }

    #[test]
    fn messages_to_the_host_round_trip(messages in prop::collection::vec(to_host(), 0..6), piece in 1usize..50) {
        prop_assert_eq!(read(&written(&messages), piece), Ok(messages));
    }

    #[test]
    fn invalid_bytes_never_panic(stream in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..50) {
        let _ = read::<ToHost>(&stream, piece);
        let _ = read::<ToGuest>(&stream, piece);
    }

    #[test]
    fn a_body_with_a_byte_more_or_less_is_refused(message in to_host(), extra in any::<u8>()) {
        let mut body = Vec::new();
        message.fields(&mut body);
        prop_assert_eq!(ToHost::decode(&body[..body.len() - 1]), Err(FrameError::Truncated));
        body.push(extra);
        prop_assert_eq!(ToHost::decode(&body), Err(FrameError::Trailing(1)));
    }
}

#[test]
fn hostile_lengths_are_refused_before_anything_is_kept() {
    let check = |stream: &[u8], expected| {
        assert_eq!(read::<ToHost>(stream, stream.len()), Err(expected), "{stream:?}");
    };
    check(&u32::MAX.to_le_bytes(), FrameError::TooLong(u32::MAX as usize));
    check(&(MAX_FRAME as u32 + 1).to_le_bytes(), FrameError::TooLong(MAX_FRAME + 1));
    check(&[0, 0, 0, 0], FrameError::Truncated);
    check(&[1, 0, 0, 0, 99], FrameError::UnknownKind(99));
    // A chunk that claims a length of 4 GiB, and a list that claims four billion arguments.
    check(&[10, 0, 0, 0, 3, 1, 0, 0, 0, 0, 255, 255, 255, 255], FrameError::Truncated);
    let list =
        [26, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255];
    assert_eq!(read::<ToGuest>(&list[..list.len()], 7), Ok(Vec::new()));
}

#[test]
fn the_longest_command_fits_a_frame() {
    let command = vec![b'x'; MAX_COMMAND];
    let message = ToGuest::Shell { id: 1, timeout_ms: 1, max_output: 1, command };
    assert_eq!(read(&written(std::slice::from_ref(&message)), 100_000), Ok(vec![message]));
}
