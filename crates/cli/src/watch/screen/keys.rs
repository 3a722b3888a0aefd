//! Key bindings.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::view::Action;

/// Key help in the last line of the list.
pub const LIST_HELP: &str = "Enter flow  ←→ sort  / filter  p pause  ? keys  q quit";
/// Key help on the page of a flow.
pub const PAGE_HELP: &str = "Esc back  ↑↓ scroll  p pause  ? keys  q quit";
/// Key help while a filter is typed.
pub const FILTER_HELP: &str = "Enter keep  Esc clear";

/// Key help below the list of keys.
pub const KEYS_HELP: &str = "Esc back  q quit";

/// The list of keys.
pub const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ PageUp PageDown Home End", "select a flow, or scroll"),
    ("← → < >", "sort by another column"),
    ("r", "reverse the order"),
    ("/", "show only flows with a text"),
    ("Enter", "open the page of the flow"),
    ("Esc", "back; clear the text"),
    ("p Space", "pause the display"),
    ("q Ctrl-C", "quit, and print the verdicts"),
    ("Ctrl-Z", "suspend; fg resumes"),
];

/// Returns the action of a key. While a filter is typed, letters are added to the filter.
pub fn action(key: KeyEvent, typing: bool) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('z') => Some(Action::Suspend),
            _ => None,
        };
    }
    match key.code {
        KeyCode::Char(letter) if typing => Some(Action::Letter(letter)),
        KeyCode::Backspace if typing => Some(Action::Erase),
        KeyCode::Enter if typing => Some(Action::Accept),
        KeyCode::Char('q') => Some(Action::Quit),
        KeyCode::Char('p' | ' ') => Some(Action::Pause),
        KeyCode::Char('?' | 'h') => Some(Action::Help),
        KeyCode::Char('r') => Some(Action::Reverse),
        KeyCode::Char('/') => Some(Action::Filter),
        KeyCode::Char('<') | KeyCode::Left => Some(Action::Sort(-1)),
        KeyCode::Char('>') | KeyCode::Right => Some(Action::Sort(1)),
        KeyCode::Char('k') | KeyCode::Up => Some(Action::Move(-1)),
        KeyCode::Char('j') | KeyCode::Down => Some(Action::Move(1)),
        KeyCode::PageUp => Some(Action::Turn(-1)),
        KeyCode::PageDown => Some(Action::Turn(1)),
        KeyCode::Home => Some(Action::First),
        KeyCode::End => Some(Action::Last),
        KeyCode::Enter => Some(Action::Open),
        KeyCode::Esc => Some(Action::Back),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_filter_input_while_typing() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(action(key(KeyCode::Char('q')), false), Some(Action::Quit));
        assert_eq!(action(key(KeyCode::Char('q')), true), Some(Action::Letter('q')));
        assert_eq!(action(key(KeyCode::Enter), true), Some(Action::Accept));
        assert_eq!(action(key(KeyCode::Enter), false), Some(Action::Open));
        assert_eq!(action(key(KeyCode::Backspace), false), None);
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        for typing in [false, true] {
            assert_eq!(action(control('c'), typing), Some(Action::Quit));
            assert_eq!(action(control('z'), typing), Some(Action::Suspend));
            assert_eq!(action(control('q'), typing), None);
        }
    }
}
