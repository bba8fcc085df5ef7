//! Controls and sequences, and their effect on the screen.

use super::grid::{Background, Cell, Kind};
use super::parser::{Act, Parameter};
use super::screen::{Pen, State};

/// The version of tmux that programs are told.
const VERSION: &str = "3.3a";

/// Parameters of a sequence, with tmux's rules for missing and too small ones.
struct Arguments<'a>(&'a [Parameter]);

impl Arguments<'_> {
    /// The parameter at `index`, at least `least`. `missing` is its default. `None` if the
    /// parameter is a group.
    fn get(&self, index: usize, least: usize, missing: usize) -> Option<usize> {
        match self.0.get(index) {
            None | Some(Parameter::Missing) => Some(missing),
            Some(Parameter::Number(number)) => Some((*number as usize).max(least)),
            Some(Parameter::Group(_)) => None,
        }
    }

    /// A count, at least 1.
    fn count(&self) -> Option<usize> {
        self.get(0, 1, 1)
    }

    /// All numeric parameters.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|parameter| match parameter {
            Parameter::Number(number) => Some(*number),
            _ => None,
        })
    }
}

impl Act for State {
    fn print(&mut self, byte: u8) {
        self.put(byte);
        self.last = Some(byte);
    }

    fn print_wide(&mut self, character: char) {
        self.put_wide(character);
    }

    fn top_bit(&mut self) {
        self.last = None;
    }

    fn control(&mut self, byte: u8) {
        match byte {
            0x08 => self.backspace(),
            b'\t' => self.tab(),
            b'\n' | 0x0b | 0x0c => self.line_feed(self.pen.background),
            b'\r' => self.x = 0,
            0x0e => self.pen.set = 1,
            0x0f => self.pen.set = 0,
            _ => {}
        }
        self.last = None;
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            (b"(", b'0') => self.pen.line_drawing[0] = true,
            (b"(", b'B') => self.pen.line_drawing[0] = false,
            (b")", b'0') => self.pen.line_drawing[1] = true,
            (b")", b'B') => self.pen.line_drawing[1] = false,
            (b"", b'7') => self.save_cursor(),
            (b"", b'8') => self.restore_cursor(),
            (b"#", b'8') => self.alignment_test(),
            (b"", b'=') => self.keys.application_keypad = true,
            (b"", b'>') => self.keys.application_keypad = false,
            (b"", b'D') => self.line_feed(self.pen.background),
            (b"", b'E') => {
                self.x = 0;
                self.line_feed(self.pen.background);
            }
            (b"", b'H') => {
                if let Some(tab) = self.tabs.get_mut(self.x) {
                    *tab = true;
                }
            }
            (b"", b'M') => self.reverse_index(),
            (b"", b'c') => self.reset(),
            (b"", b'\\') => {}
            // An unknown sequence does not end a repetition (REP).
            _ => return,
        }
        self.last = None;
    }

    fn sequence(&mut self, intermediates: &[u8], parameters: &[Parameter], last: u8) {
        let arguments = Arguments(parameters);
        let known = match intermediates {
            b"" => self.plain_sequence(&arguments, last).unwrap_or(true),
            b"?" => match last {
                b'h' => self.private_modes(&arguments, true),
                b'l' => self.private_modes(&arguments, false),
                _ => false,
            },
            b">" => self.extended_sequence(&arguments, last),
            b" " => last == b'q',
            _ => false,
        };
        if known {
            self.last = None;
        }
    }
}

impl State {
    /// A sequence without intermediates. False if it is unknown, `None` if its parameters are
    /// invalid.
    fn plain_sequence(&mut self, arguments: &Arguments<'_>, last: u8) -> Option<bool> {
        let (cols, rows) = (self.grid.cols, self.grid.rows);
        let background = self.pen.background;
        match last {
            b'A' => self.up(arguments.count()?),
            b'B' => self.down(arguments.count()?),
            b'C' => self.right(arguments.count()?),
            b'D' => self.x = self.x.saturating_sub(arguments.count()?),
            b'E' => {
                let count = arguments.count()?;
                self.x = 0;
                self.down(count);
            }
            b'F' => {
                let count = arguments.count()?;
                self.x = 0;
                self.up(count);
            }
            b'G' | b'`' => self.move_by_origin(Some(arguments.count()? - 1), None),
            b'd' => self.move_by_origin(None, Some(arguments.count()? - 1)),
            b'H' | b'f' => {
                let (y, x) = (arguments.get(0, 1, 1)?, arguments.get(1, 1, 1)?);
                self.move_by_origin(Some(x - 1), Some(y - 1));
            }
            b'J' => self.erase_display(arguments)?,
            b'K' => match arguments.get(0, 0, 0)? {
                0 => self.clear_to_end_of_line(),
                1 => self.clear_to_start_of_line(),
                2 => self.clear_line(),
                _ => {}
            },
            b'@' => {
                let count = arguments.count()?.min(cols - self.x);
                self.insert_cells(count);
            }
            b'P' => {
                let count = arguments.count()?.min(cols - self.x);
                self.delete_cells(count);
            }
            b'X' => {
                let count = arguments.count()?.min(cols - self.x);
                self.grid.clear_cells(self.y, self.x, self.x + count, background);
            }
            b'L' => self.insert_lines(arguments.count()?),
            b'M' => self.delete_lines(arguments.count()?),
            b'S' => {
                for _ in 0..arguments.count()?.min(self.lower - self.upper + 1) {
                    self.grid.scroll_up(self.upper, self.lower, background);
                }
            }
            b'T' => {
                for _ in 0..arguments.count()?.min(self.lower - self.upper + 1) {
                    self.grid.scroll_down(self.upper, self.lower, background);
                }
            }
            b'Z' => self.back_tab(arguments.count()?),
            b'b' => {
                let count = arguments.count()?.min(cols - self.x);
                if let Some(byte) = self.last {
                    (0..count).for_each(|_| self.put(byte));
                }
            }
            b'c' if arguments.get(0, 0, 0)? == 0 => self.answer("\x1b[?1;2c"),
            b'g' => match arguments.get(0, 0, 0)? {
                0 => {
                    if let Some(tab) = self.tabs.get_mut(self.x) {
                        *tab = false;
                    }
                }
                3 => self.tabs.fill(false),
                _ => {}
            },
            b'h' => self.insert |= arguments.numbers().any(|mode| mode == 4),
            b'l' => self.insert &= !arguments.numbers().any(|mode| mode == 4),
            b'm' => self.colours(arguments),
            b'n' => match arguments.get(0, 0, 0)? {
                5 => self.answer("\x1b[0n"),
                6 => self.answer(&format!("\x1b[{};{}R", self.y + 1, self.x + 1)),
                _ => {}
            },
            b'r' => {
                let (upper, lower) = (arguments.get(0, 1, 1)?, arguments.get(1, 1, rows)?);
                self.set_region(upper - 1, lower - 1);
            }
            b's' => self.save_cursor(),
            b'u' => self.restore_cursor(),
            b't' => self.window(arguments),
            b'c' => {}
            _ => return Some(false),
        }
        Some(true)
    }

    fn extended_sequence(&mut self, arguments: &Arguments<'_>, last: u8) -> bool {
        let first = arguments.get(0, 0, 0);
        match last {
            b'c' if first == Some(0) => self.answer("\x1b[>84;0;0c"),
            b'q' if first == Some(0) => self.answer(&format!("\x1bP>|tmux {VERSION}\x1b\\")),
            b'm' => match (first, arguments.get(1, 0, 0)) {
                (Some(0), _) | (Some(4), Some(0)) => self.keys.extended = false,
                (Some(4), Some(1 | 2)) => self.keys.extended = true,
                _ => {}
            },
            b'n' if first == Some(4) => self.keys.extended = false,
            b'c' | b'q' | b'n' => {}
            _ => return false,
        }
        true
    }

    fn private_modes(&mut self, arguments: &Arguments<'_>, on: bool) -> bool {
        for mode in arguments.numbers() {
            match mode {
                1 => self.keys.application_cursor = on,
                3 => {
                    self.move_by_origin(Some(0), Some(0));
                    self.clear_screen(self.pen.background);
                }
                6 => {
                    self.origin = on;
                    self.move_by_origin(Some(0), Some(0));
                }
                7 => self.wrap = on,
                47 | 1047 if on => self.alternate_on(false),
                1049 if on => self.alternate_on(true),
                47 | 1047 => self.alternate_off(false),
                1049 => self.alternate_off(true),
                _ => {}
            }
        }
        true
    }

    fn answer(&mut self, text: &str) {
        self.answers.extend_from_slice(text.as_bytes());
    }

    fn up(&mut self, count: usize) {
        let most = if self.y < self.upper { self.y } else { self.y - self.upper };
        self.leave_margin();
        self.y -= count.min(most);
    }

    fn down(&mut self, count: usize) {
        let edge = if self.y > self.lower { self.grid.rows - 1 } else { self.lower };
        self.leave_margin();
        self.y += count.min(edge - self.y);
    }

    fn leave_margin(&mut self) {
        self.x = self.x.min(self.grid.cols - 1);
    }

    fn right(&mut self, count: usize) {
        if self.x < self.grid.cols {
            self.x += count.min(self.grid.cols - 1 - self.x);
        } else {
            // tmux subtracts unsigned numbers here: past the margin there is no limit, so the
            // result is clamped.
            self.x = self.grid.cols - 1;
        }
    }

    fn tab(&mut self) {
        let last = self.grid.cols - 1;
        if self.x < last {
            self.x = (self.x + 1..last).find(|x| self.tabs[*x]).unwrap_or(last);
        }
    }

    fn back_tab(&mut self, count: usize) {
        self.leave_margin();
        for _ in 0..count.min(self.grid.cols) {
            self.x = (1..self.x).rev().find(|x| self.tabs[*x]).unwrap_or(0);
        }
    }

    fn alignment_test(&mut self) {
        for y in 0..self.grid.rows {
            for x in 0..self.grid.cols {
                self.grid.set(x, y, Cell::new('E', Kind::Narrow));
            }
        }
        (self.x, self.y) = (0, 0);
        (self.upper, self.lower) = (0, self.grid.rows - 1);
    }

    fn erase_display(&mut self, arguments: &Arguments<'_>) -> Option<()> {
        let (cols, rows) = (self.grid.cols, self.grid.rows);
        let background = self.pen.background;
        match arguments.get(0, 0, 0)? {
            0 if (self.x, self.y) == (0, 0) => self.clear_screen(background),
            0 => {
                self.grid.clear_cells(self.y, self.x, cols, background);
                if self.y + 1 < rows {
                    self.grid.clear_lines(self.y + 1, rows, background);
                }
            }
            1 => {
                if self.y > 0 {
                    self.grid.clear_lines(0, self.y, background);
                }
                self.grid.clear_cells(self.y, 0, (self.x + 1).min(cols), background);
            }
            2 => self.clear_screen(background),
            3 if arguments.get(1, 0, 0) == Some(0) => self.grid.forget_history(),
            _ => {}
        }
        Some(())
    }

    fn clear_line(&mut self) {
        // An empty line stays as it is, so the line above stays marked as wrapped.
        if self.grid.allocated(self.y) > 0 || self.pen.background == Background::Coloured {
            self.grid.clear_lines(self.y, self.y + 1, self.pen.background);
        }
    }

    fn clear_to_end_of_line(&mut self) {
        if self.x == 0 {
            self.clear_line();
        } else {
            self.grid.clear_cells(self.y, self.x, self.grid.cols, self.pen.background);
        }
    }

    fn clear_to_start_of_line(&mut self) {
        if self.x + 1 >= self.grid.cols {
            self.clear_line();
        } else {
            self.grid.clear_cells(self.y, 0, self.x + 1, self.pen.background);
        }
    }

    /// Inserts `count` cells. If fewer cells move than are inserted, the cells between keep their
    /// text.
    pub(super) fn insert_cells(&mut self, count: usize) {
        let (x, y, cols) = (self.x, self.y, self.grid.cols);
        if count == 0 || x >= cols {
            return;
        }
        if x + 1 == cols {
            self.grid.clear_cells(y, x, x + 1, self.pen.background);
        } else {
            self.grid.move_cells(y, x + count, x, cols - x - count);
        }
    }

    fn delete_cells(&mut self, count: usize) {
        let (x, y, cols) = (self.x, self.y, self.grid.cols);
        if count > 0 {
            self.grid.move_cells(y, x, x + count, cols - x - count);
            self.grid.clear_cells(y, cols - count, x + count, self.pen.background);
        }
    }

    fn insert_lines(&mut self, count: usize) {
        let (y, background) = (self.y, self.pen.background);
        let end = if self.in_region() { self.lower + 1 } else { self.grid.rows };
        let count = count.min(end - y);
        let moved = end - y - count;
        self.grid.move_lines(y + count, y, moved, background);
        if self.in_region() && count != moved {
            self.grid.clear_lines(y + moved, y + count, background);
        }
    }

    fn delete_lines(&mut self, count: usize) {
        let (y, background) = (self.y, self.pen.background);
        let end = if self.in_region() { self.lower + 1 } else { self.grid.rows };
        let count = count.min(end - y);
        let moved = end - y - count;
        self.grid.move_lines(y, y + count, moved, background);
        let from = if self.in_region() { y + moved } else { end - count };
        if from != y + count {
            self.grid.clear_lines(from, y + count, background);
        }
    }

    fn in_region(&self) -> bool {
        (self.upper..=self.lower).contains(&self.y)
    }

    /// SGR. Only the background colour affects the grid.
    fn colours(&mut self, arguments: &Arguments<'_>) {
        if arguments.0.is_empty() {
            self.reset_colours();
        }
        let mut rest = arguments.0;
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                Parameter::Missing | Parameter::Number(0) => self.reset_colours(),
                Parameter::Number(40..=47 | 100..=107) => self.pen.background = Background::Coloured,
                Parameter::Number(49) => self.pen.background = Background::Default,
                Parameter::Number(kind @ (38 | 48 | 58)) => rest = self.colour(*kind == 48, after),
                Parameter::Group(numbers) => self.colour_group(numbers),
                Parameter::Number(_) => {}
            }
        }
    }

    fn reset_colours(&mut self) {
        self.pen = Pen { background: Background::Default, ..self.pen };
    }

    /// Reads a colour, `5;n` or `2;r;g;b`. Returns the remaining parameters. Of an invalid colour
    /// only its first number is skipped.
    fn colour<'a>(&mut self, background: bool, after: &'a [Parameter]) -> &'a [Parameter] {
        let good = |parameter: Option<&Parameter>| matches!(parameter, Some(Parameter::Number(0..=255)));
        let (set, used) = match after.first() {
            Some(Parameter::Number(5)) => {
                let colour = if good(after.get(1)) { Background::Coloured } else { Background::Default };
                (Some(colour), 2)
            }
            Some(Parameter::Number(2)) if (1..=3).all(|n| good(after.get(n))) => {
                (Some(Background::Coloured), 4)
            }
            _ => (None, 1),
        };
        if background && let Some(set) = set {
            self.pen.background = set;
        }
        after.get(used..).unwrap_or_default()
    }

    /// `48:5:n` and `48:2:…:r:g:b`.
    fn colour_group(&mut self, numbers: &[Option<u32>]) {
        let good = |n: usize| numbers.get(n).is_some_and(|n| n.is_some_and(|n| n <= 255));
        match numbers {
            [Some(48), Some(5), ..] if numbers.len() >= 3 => {
                self.pen.background = if good(2) { Background::Coloured } else { Background::Default };
            }
            [Some(48), Some(2), ..] => {
                let first = if numbers.len() == 5 { 2 } else { 3 };
                if (first..first + 3).all(good) {
                    self.pen.background = Background::Coloured;
                }
            }
            _ => {}
        }
    }

    /// XTWINOPS (window operations). Only the query for the size is answered (columns first, as in
    /// tmux 3.3a).
    fn window(&mut self, arguments: &Arguments<'_>) {
        let number = |at: usize| match arguments.0.get(at) {
            Some(Parameter::Number(number)) => Some(*number),
            _ => None,
        };
        let mut at = 0;
        while let Some(operation) = number(at) {
            let taken = match operation {
                3 | 4 | 8 => 2,
                9 | 10 | 22 | 23 => 1,
                _ => 0,
            };
            if (at + 1..=at + taken).any(|at| number(at).is_none()) {
                return;
            }
            if operation == 18 {
                self.answer(&format!("\x1b[8;{};{}t", self.grid.cols, self.grid.rows));
            }
            at += taken + 1;
        }
    }
}
