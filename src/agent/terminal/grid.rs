//! Lines of cells, with a history above them. They move as in tmux.

use std::collections::VecDeque;

/// One cell of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: char,
    /// Zero-width characters that belong to this cell.
    pub(super) more: Option<Box<str>>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Narrow,
    Wide,
    /// Covered by the wide character on its left.
    Padding,
}

impl Cell {
    pub(super) const BLANK: Self = Self { text: ' ', more: None, kind: Kind::Narrow };
    pub(super) const PADDING: Self = Self { text: ' ', more: None, kind: Kind::Padding };

    pub(super) fn new(text: char, kind: Kind) -> Self {
        Self { text, more: None, kind }
    }

    pub(super) fn is_padding(&self) -> bool {
        self.kind == Kind::Padding
    }
}

/// The fill of a cleared cell. Colours are never shown, but tmux allocates the cells of a line with
/// a coloured background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Background {
    #[default]
    Default,
    Coloured,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// Allocated in steps, as in tmux. A cell that is not allocated behaves unlike a cleared one.
    cells: Vec<Cell>,
    /// One past the last cell that was written since the line was cleared. The text ends there.
    used: usize,
    /// The text continues on the next line.
    wrapped: bool,
}

/// A line that scrolled off the top.
#[derive(Clone, Debug)]
struct PastLine {
    text: String,
    /// Like [`Line::wrapped`].
    wrapped: bool,
}

/// The visible lines, `0..rows`, and the history.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) cols: usize,
    pub(super) rows: usize,
    lines: Vec<Line>,
    history: VecDeque<PastLine>,
    limit: usize,
    /// False while a program uses the alternate screen.
    keeps_history: bool,
    /// Number of lines that output has pushed off the top.
    pushed: u64,
}

/// The lines of the main screen, while the alternate one is shown.
#[derive(Clone, Debug)]
pub(super) struct Saved(Vec<Line>);

impl Grid {
    pub(super) fn new(rows: usize, cols: usize, limit: usize) -> Self {
        let lines = vec![Line::default(); rows];
        Self { cols, rows, lines, history: VecDeque::new(), limit, keeps_history: true, pushed: 0 }
    }

    /// The cell at a position. It is blank if it is not allocated.
    pub(super) fn cell(&self, x: usize, y: usize) -> &Cell {
        self.lines[y].cells.get(x).unwrap_or(&Cell::BLANK)
    }

    pub(super) fn set(&mut self, x: usize, y: usize, cell: Cell) {
        self.expand(y, x + 1);
        let line = &mut self.lines[y];
        line.used = line.used.max(x + 1);
        line.cells[x] = cell;
    }

    /// Number of allocated cells in a line.
    pub(super) fn allocated(&self, y: usize) -> usize {
        self.lines[y].cells.len()
    }

    pub(super) fn is_wrapped(&self, y: usize) -> bool {
        self.lines[y].wrapped
    }

    pub(super) fn mark_wrapped(&mut self, y: usize) {
        self.lines[y].wrapped = true;
    }

    pub(super) fn keeps_history(&self) -> bool {
        self.keeps_history
    }

    pub(super) fn forget_history(&mut self) {
        self.history.clear();
    }

    /// Allocates at least `need` cells: a quarter of the line, half of it, or all.
    fn expand(&mut self, y: usize, need: usize) {
        let cols = self.cols;
        let line = &mut self.lines[y];
        if need <= line.cells.len() {
            return;
        }
        let size = match need {
            _ if need < cols / 4 => cols / 4,
            _ if need < cols / 2 => cols / 2,
            _ => need.max(cols),
        };
        line.cells.resize(size, Cell::BLANK);
    }

    fn empty(&mut self, y: usize, background: Background) {
        self.lines[y] = Line::default();
        if background == Background::Coloured {
            self.expand(y, self.cols);
        }
    }

    fn unwrap_before(&mut self, y: usize) {
        if let Some(line) = y.checked_sub(1).and_then(|y| self.lines.get_mut(y)) {
            line.wrapped = false;
        }
    }

    /// Empties whole lines.
    pub(super) fn clear_lines(&mut self, from: usize, to: usize, background: Background) {
        for y in from..to {
            self.empty(y, background);
        }
        self.unwrap_before(from);
    }

    /// Blanks the cells `from..to` of a line. If that is all of them, the line becomes empty.
    pub(super) fn clear_cells(&mut self, y: usize, from: usize, to: usize, background: Background) {
        if from >= to {
            return;
        }
        if from == 0 && to == self.cols {
            self.clear_lines(y, y + 1, background);
            return;
        }
        if background == Background::Coloured {
            self.expand(y, to);
        }
        let cells = &mut self.lines[y].cells;
        let to = to.min(cells.len());
        if from < to {
            cells[from..to].fill(Cell::BLANK);
        }
    }

    /// Moves `count` lines from `from` to `to`, and clears the lines that they left.
    pub(super) fn move_lines(&mut self, to: usize, from: usize, count: usize, background: Background) {
        if count == 0 || from == to {
            return;
        }
        self.unwrap_before(to);
        let moved: Vec<Line> = self.lines[from..from + count].iter_mut().map(std::mem::take).collect();
        for (y, line) in moved.into_iter().enumerate() {
            self.lines[to + y] = line;
        }
        for y in (from..from + count).filter(|y| !(to..to + count).contains(y)) {
            self.empty(y, background);
        }
        if !(to..to + count).contains(&from) {
            self.unwrap_before(from);
        }
    }

    /// Moves `count` cells from `from` to `to`, and blanks the cells that they left.
    pub(super) fn move_cells(&mut self, y: usize, to: usize, from: usize, count: usize) {
        if count == 0 || from == to {
            return;
        }
        self.expand(y, (from + count).max(to + count));
        let line = &mut self.lines[y];
        let moved = line.cells[from..from + count].to_vec();
        line.cells[to..to + count].clone_from_slice(&moved);
        line.used = line.used.max(to + count);
        for x in (from..from + count).filter(|x| !(to..to + count).contains(x)) {
            line.cells[x] = Cell::BLANK;
        }
    }

    /// Scrolls a region up by a line. The top line of the region goes into the history, even if the
    /// region does not start at the top of the screen.
    pub(super) fn scroll_up(&mut self, upper: usize, lower: usize, background: Background) {
        if self.keeps_history {
            self.pushed += 1;
            self.remember(upper);
            self.lines[upper..=lower].rotate_left(1);
            self.empty(lower, background);
        } else {
            self.move_lines(upper, upper + 1, lower - upper, background);
        }
    }

    pub(super) fn scroll_down(&mut self, upper: usize, lower: usize, background: Background) {
        self.move_lines(upper + 1, upper, lower - upper, background);
    }

    /// Moves all lines up to the last used one into the history.
    pub(super) fn clear_into_history(&mut self, background: Background) {
        let last = self.lines.iter().rposition(|line| line.used != 0).map_or(0, |last| last + 1);
        for y in 0..last {
            self.remember(y);
        }
        self.lines.rotate_left(last);
        for y in self.rows - last..self.rows {
            self.empty(y, background);
        }
        self.clear_lines(0, self.rows - last, background);
    }

    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Adds a line to the history. Like tmux, drops a tenth of a full history at once.
    fn remember(&mut self, y: usize) {
        let line = PastLine { text: self.whole_text(y), wrapped: self.is_wrapped(y) };
        if !self.history.is_empty() && self.history.len() >= self.limit {
            let dropped = (self.limit / 10).max(1).min(self.history.len());
            self.history.drain(..dropped);
        }
        self.history.push_back(line);
    }

    /// Shows the alternate screen, which is empty and has no history.
    pub(super) fn save(&mut self) -> Saved {
        let saved = Saved(self.lines.clone());
        self.clear_lines(0, self.rows, Background::Default);
        self.keeps_history = false;
        saved
    }

    pub(super) fn restore(&mut self, saved: Saved) {
        self.lines = saved.0;
        self.keeps_history = true;
    }

    /// The text of a line, without trailing blanks.
    pub(super) fn text(&self, y: usize) -> String {
        let mut text = self.whole_text(y);
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    fn whole_text(&self, y: usize) -> String {
        let line = &self.lines[y];
        let mut text = String::new();
        for cell in line.cells.iter().take(line.used).filter(|cell| !cell.is_padding()) {
            text.push(cell.text);
            text.push_str(cell.more.as_deref().unwrap_or_default());
        }
        text
    }

    /// The lines of the history, without trailing blanks.
    pub(super) fn history(&self) -> impl Iterator<Item = &str> {
        self.history.iter().map(|line| line.text.trim_end_matches(' '))
    }

    /// All lines of history and screen, each with the row where it begins. A wrapped line is
    /// joined.
    pub(super) fn joined(&self) -> Vec<(usize, String)> {
        let mut lines: Vec<(usize, String)> = Vec::new();
        let mut goes_on = false;
        let past = self.history.iter().map(|line| (line.text.clone(), line.wrapped));
        let rows = past.chain((0..self.rows).map(|y| (self.whole_text(y), self.is_wrapped(y))));
        for (row, (text, wrapped)) in rows.enumerate() {
            match lines.last_mut() {
                Some((_, line)) if goes_on => line.push_str(&text),
                _ => lines.push((row, text)),
            }
            goes_on = wrapped;
        }
        lines
    }

    /// Number of rows in the history.
    pub(super) fn past_rows(&self) -> usize {
        self.history.len()
    }

    /// The text of row `y`, up to column `x`.
    pub(super) fn text_before(&self, x: usize, y: usize) -> String {
        let line = &self.lines[y];
        let cells = line.cells.iter().take(line.used.min(x)).filter(|cell| !cell.is_padding());
        cells
            .flat_map(|cell| {
                std::iter::once(cell.text).chain(cell.more.as_deref().unwrap_or_default().chars())
            })
            .collect()
    }
}
