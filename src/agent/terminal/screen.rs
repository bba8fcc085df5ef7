//! The screen: bytes change it as in tmux's `screen-write.c`, with all of its oddities.

use super::grid::{Background, Cell, Grid, Kind, Saved};
use super::parser::Parser;
use super::width::{Width, width};

/// Lines of tmux's history. Harbor asks for ten million, but only after the session exists. That
/// has no effect.
pub const HISTORY_LINES: usize = 2000;
/// Columns between tab stops.
const TAB: usize = 8;
/// Maximum bytes of a cell. Further combining characters are dropped.
const MAX_CELL_BYTES: usize = 21;
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// A terminal without a program. It takes bytes, and gives text and answers.
#[derive(Debug)]
pub struct Screen {
    parser: Parser,
    pub(super) state: State,
}

/// Modes that programs set. They decide which bytes a key sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyModes {
    /// Arrow keys send `ESC O` (DECCKM).
    pub application_cursor: bool,
    /// The numeric keypad sends `ESC O` (DECKPAM).
    pub application_keypad: bool,
    /// Keys without a standard code send `CSI … u`.
    pub extended: bool,
}

impl Screen {
    /// An empty screen.
    pub fn new(rows: u16, cols: u16) -> Self {
        Self::with_history(rows, cols, HISTORY_LINES)
    }

    /// An empty screen. Its history has no limit.
    pub fn with_whole_history(rows: u16, cols: u16) -> Self {
        Self::with_history(rows, cols, usize::MAX)
    }

    pub(super) fn with_history(rows: u16, cols: u16, lines: usize) -> Self {
        let state = State::new(usize::from(rows.max(1)), usize::from(cols.max(1)), lines);
        Self { parser: Parser::default(), state }
    }

    /// Takes output of a program.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.state);
    }

    /// The terminal's answers to queries since the last call. Send them to the program.
    pub fn take_answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.state.answers)
    }

    /// `tmux capture-pane -p`: the lines of the screen without trailing blanks, each with a
    /// newline.
    pub fn screen(&self) -> String {
        let grid = &self.state.grid;
        (0..grid.rows).flat_map(|y| [grid.text(y), "\n".to_owned()]).collect()
    }

    /// `tmux capture-pane -p -S -`: the history, then the screen.
    pub fn full_pane(&self) -> String {
        let mut text: String = self.state.grid.history().flat_map(|line| [line, "\n"]).collect();
        text.push_str(&self.screen());
        text
    }

    /// `tmux capture-pane -p -J -S -`: history and screen with trailing blanks. A wrapped line is
    /// joined. Each line has the row where it begins.
    pub fn joined_lines(&self) -> Vec<(usize, String)> {
        self.state.grid.joined()
    }

    /// Number of lines that output has pushed off the top of the screen.
    pub fn pushed(&self) -> u64 {
        self.state.grid.pushed()
    }

    /// Number of rows of history and screen.
    pub fn lines(&self) -> usize {
        self.state.grid.past_rows() + self.state.grid.rows
    }

    /// The cursor's row, counted from the start of the history, and the text before the cursor.
    pub fn before_cursor(&self) -> (usize, String) {
        let State { grid, x, y, .. } = &self.state;
        (grid.past_rows() + y, grid.text_before(*x, *y))
    }

    pub fn key_modes(&self) -> KeyModes {
        self.state.keys
    }

    /// The number of the string (e.g. a title) that has begun and not ended.
    pub(super) fn open_string(&self) -> Option<u64> {
        self.parser.open_string()
    }

    /// Ends a string, as tmux does after a time-out.
    pub(super) fn abandon_string(&mut self) {
        self.parser.abandon_string();
        self.state.reset_pen();
    }
}

/// Attributes of the next characters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pen {
    pub(super) background: Background,
    /// For each of the two character sets, whether it is line drawing. `set` is the one in use.
    pub(super) line_drawing: [bool; 2],
    pub(super) set: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    pen: Pen,
    x: usize,
    y: usize,
    origin: bool,
}

/// All state but the parser's.
#[derive(Debug)]
pub(super) struct State {
    pub(super) grid: Grid,
    /// Equals `cols` after a character in the last column: the next character wraps.
    pub(super) x: usize,
    pub(super) y: usize,
    /// The scroll region: its first and last line.
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) tabs: Vec<bool>,
    pub(super) pen: Pen,
    pub(super) keys: KeyModes,
    pub(super) wrap: bool,
    pub(super) insert: bool,
    pub(super) origin: bool,
    /// The last printed ASCII character, for REP.
    pub(super) last: Option<u8>,
    joined: bool,
    /// The cursor that DECSC saved.
    saved: Cursor,
    /// The cursor's place before the switch to the alternate screen. It stays after the switch
    /// back.
    saved_main: Option<(usize, usize)>,
    saved_pen: Pen,
    main: Option<Saved>,
    pub(super) answers: Vec<u8>,
}

impl State {
    fn new(rows: usize, cols: usize, history: usize) -> Self {
        let mut state = Self {
            grid: Grid::new(rows, cols, history),
            x: 0,
            y: 0,
            upper: 0,
            lower: rows - 1,
            tabs: Vec::new(),
            pen: Pen::default(),
            keys: KeyModes::default(),
            wrap: true,
            insert: false,
            origin: false,
            last: None,
            joined: false,
            saved: Cursor::default(),
            saved_main: None,
            saved_pen: Pen::default(),
            main: None,
            answers: Vec::new(),
        };
        state.reset_tabs();
        state
    }

    pub(super) fn reset_tabs(&mut self) {
        self.tabs = (0..self.grid.cols).map(|x| x > 0 && x.is_multiple_of(TAB)).collect();
    }

    /// Resets colours, character sets and the saved cursor, but not its origin mode.
    pub(super) fn reset_pen(&mut self) {
        self.pen = Pen::default();
        self.saved = Cursor { origin: self.saved.origin, ..Cursor::default() };
        self.last = None;
    }

    /// RIS: full reset.
    pub(super) fn reset(&mut self) {
        self.reset_pen();
        self.reset_tabs();
        self.set_region(0, self.grid.rows - 1);
        (self.wrap, self.insert, self.origin) = (true, false, false);
        self.keys = KeyModes::default();
        self.clear_screen(Background::Default);
        (self.x, self.y) = (0, 0);
    }

    pub(super) fn save_cursor(&mut self) {
        self.saved = Cursor { pen: self.pen, x: self.x, y: self.y, origin: self.origin };
    }

    pub(super) fn restore_cursor(&mut self) {
        let saved = self.saved;
        (self.pen, self.origin) = (saved.pen, saved.origin);
        self.move_to(Some(saved.x), Some(saved.y));
    }

    /// Moves the cursor, at most to the edges.
    pub(super) fn move_to(&mut self, x: Option<usize>, y: Option<usize>) {
        self.x = x.map_or(self.x, |x| x.min(self.grid.cols - 1));
        self.y = y.map_or(self.y, |y| y.min(self.grid.rows - 1));
    }

    /// Moves the cursor to a program's coordinates. In origin mode they count from the region's
    /// top.
    pub(super) fn move_by_origin(&mut self, x: Option<usize>, y: Option<usize>) {
        let y = y.map(|y| match y {
            _ if !self.origin => y,
            _ if y > self.lower - self.upper => self.lower,
            _ => y + self.upper,
        });
        self.move_to(x, y);
    }

    pub(super) fn set_region(&mut self, upper: usize, lower: usize) {
        let bottom = self.grid.rows - 1;
        let (upper, lower) = (upper.min(bottom), lower.min(bottom));
        if upper < lower {
            (self.x, self.y) = (0, 0);
            (self.upper, self.lower) = (upper, lower);
        }
    }

    pub(super) fn line_feed(&mut self, background: Background) {
        if self.y == self.lower {
            self.grid.scroll_up(self.upper, self.lower, background);
        } else if self.y < self.grid.rows - 1 {
            self.y += 1;
        }
    }

    pub(super) fn reverse_index(&mut self) {
        if self.y == self.upper {
            self.grid.scroll_down(self.upper, self.lower, self.pen.background);
        } else {
            self.y = self.y.saturating_sub(1);
        }
    }

    pub(super) fn backspace(&mut self) {
        if self.x > 0 {
            self.x -= 1;
        } else if self.y > 0 && self.grid.is_wrapped(self.y - 1) {
            self.y -= 1;
            self.x = self.grid.cols - 1;
        }
    }

    /// Clears the screen. If there is a history, the text goes into it.
    pub(super) fn clear_screen(&mut self, background: Background) {
        if self.grid.keeps_history() {
            self.grid.clear_into_history(background);
        } else {
            self.grid.clear_lines(0, self.grid.rows, background);
        }
    }

    pub(super) fn alternate_on(&mut self, with_cursor: bool) {
        if self.main.is_some() {
            return;
        }
        if with_cursor {
            self.saved_main = Some((self.x, self.y));
        }
        self.saved_pen = self.pen;
        self.main = Some(self.grid.save());
    }

    pub(super) fn alternate_off(&mut self, with_cursor: bool) {
        if with_cursor && let Some((x, y)) = self.saved_main {
            (self.x, self.y) = (x, y);
            let sets = self.pen;
            self.pen = Pen { background: self.saved_pen.background, ..sets };
        }
        if let Some(saved) = self.main.take() {
            self.grid.restore(saved);
        }
        self.move_to(Some(self.x), Some(self.y));
    }

    /// Wraps the cursor to the next line.
    fn wrap_line(&mut self) {
        self.grid.mark_wrapped(self.y);
        self.line_feed(Background::Default);
        self.x = 0;
    }

    /// The fast path: ASCII in the usual modes.
    fn write_plain(&mut self, byte: u8) {
        if self.x >= self.grid.cols {
            self.wrap_line();
        }
        let (x, y) = (self.x, self.y);
        // A wide character may be overwritten in its middle: blank its other half. Like tmux, leave
        // a left half in column 0.
        let mut start = x;
        while start > 0 && self.grid.cell(start, y).is_padding() {
            self.grid.set(start, y, Cell::BLANK);
            start -= 1;
        }
        if start > 0 && self.grid.cell(start, y).kind == Kind::Wide {
            self.grid.set(start, y, Cell::BLANK);
        }
        self.grid.set(x, y, Cell::new(char::from(byte), Kind::Narrow));
        self.x += 1;
        self.blank_padding(self.x);
    }

    /// Blanks the padding from column `x` on.
    fn blank_padding(&mut self, mut x: usize) {
        while x < self.grid.cols && self.grid.cell(x, self.y).is_padding() {
            self.grid.set(x, self.y, Cell::BLANK);
            x += 1;
        }
    }

    /// Writes any character, in any mode. `wide` is its number of columns.
    fn write_cell(&mut self, character: char, wide: usize) {
        let cols = self.grid.cols;
        if character == ZERO_WIDTH_JOINER {
            self.joined = true;
            return;
        }
        let joined = std::mem::take(&mut self.joined);
        if joined {
            self.combine(ZERO_WIDTH_JOINER);
        }
        if wide == 0 || joined {
            self.combine(character);
            return;
        }
        if !self.wrap && wide > 1 && (wide > cols || (self.x != cols && self.x + wide > cols)) {
            return;
        }
        if self.insert {
            self.insert_cells(wide);
        }
        if self.wrap && self.x + wide > cols {
            self.wrap_line();
        }
        if self.x + wide > cols {
            return;
        }
        let mut unchanged = !self.overwrite(wide) && !self.insert;
        for x in self.x + 1..self.x + wide {
            self.grid.set(x, self.y, Cell::PADDING);
            unchanged = false;
        }
        // A blank in a cell that is not allocated is not written, so the cell stays unused.
        let nothing = character == ' ' && self.pen.background == Background::Default;
        if !(unchanged && nothing && self.x >= self.grid.allocated(self.y)) {
            let kind = if wide > 1 { Kind::Wide } else { Kind::Narrow };
            self.grid.set(self.x, self.y, Cell::new(character, kind));
        }
        // Without wrapping, the cursor stays on the last column.
        let last = usize::from(!self.wrap);
        self.x = if self.x + last + wide <= cols { self.x + wide } else { cols - last };
    }

    /// Blanks the other half of wide characters that the next character will cover in part. True if
    /// there were any.
    fn overwrite(&mut self, wide: usize) -> bool {
        let (mut done, here) = (false, self.grid.cell(self.x, self.y).kind);
        if here == Kind::Padding {
            let mut x = self.x;
            while x > 0 && self.grid.cell(x, self.y).is_padding() {
                self.grid.set(x, self.y, Cell::BLANK);
                x -= 1;
            }
            self.grid.set(x, self.y, Cell::BLANK);
            done = true;
        }
        if wide != 1 || here != Kind::Narrow {
            let from = self.x + wide;
            done |= from < self.grid.cols && self.grid.cell(from, self.y).is_padding();
            self.blank_padding(from);
        }
        done
    }

    /// Adds a zero-width character to the character on the left.
    fn combine(&mut self, character: char) {
        let y = self.y;
        let Some(x) = (0..self.x).rev().find(|x| !self.grid.cell(*x, y).is_padding()) else { return };
        let mut cell = self.grid.cell(x, y).clone();
        let mut more = cell.more.take().map_or_else(String::new, String::from);
        if cell.text.len_utf8() + more.len() + character.len_utf8() > MAX_CELL_BYTES {
            return;
        }
        more.push(character);
        cell.more = Some(more.into_boxed_str());
        self.grid.set(x, y, cell);
    }

    /// Writes a printable ASCII character.
    pub(super) fn put(&mut self, byte: u8) {
        // A line drawing character is stored as its letter: `capture-pane` prints that.
        if self.wrap && !self.insert && !self.pen.line_drawing[self.pen.set] {
            self.write_plain(byte);
        } else {
            self.write_cell(char::from(byte), 1);
        }
    }

    /// Writes a character beyond ASCII. Unprintable ones are dropped.
    pub(super) fn put_wide(&mut self, character: char) {
        match width(character) {
            Width::Unprintable => {}
            Width::Zero => self.write_cell(character, 0),
            Width::One => self.write_cell(character, 1),
            Width::Two => self.write_cell(character, 2),
        }
    }
}
