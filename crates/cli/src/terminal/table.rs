//! Tables in the text of the model.

use super::line::{BOLD, Break, DIM, PLAIN, StyledLine};

/// The columns between two cells.
const GAP: usize = 2;

/// The cells of a table, the heading first.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Vec<StyledLine>>,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, cell: StyledLine) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Returns columns, if they fit; otherwise each row as a list of its cells with their headings.
    pub(super) fn rows(&self, width: usize) -> Vec<StyledLine> {
        let Some((heading, body)) = self.rows.split_first() else { return Vec::new() };
        let column = |number: usize| self.rows.iter().filter_map(move |row| row.get(number)).map(StyledLine::width);
        let widths: Vec<usize> = (0..heading.len()).map(|number| column(number).max().unwrap_or(0)).collect();
        if widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) > width {
            return list(heading, body, width);
        }
        let line = |cells: &[StyledLine]| {
            let padded = cells.iter().zip(&widths).fold(StyledLine::new(), |line, (cell, width)| {
                line.then(cell).exact(PLAIN, " ".repeat(width.saturating_sub(cell.width()) + GAP))
            });
            padded.without_trailing_spaces()
        };
        let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join(&" ".repeat(GAP));
        let head: Vec<StyledLine> = heading.iter().map(|cell| StyledLine::new().exact(BOLD, cell.text())).collect();
        let first = [line(&head), StyledLine::new().exact(DIM, rule)];
        first.into_iter().chain(body.iter().map(|row| line(row))).collect()
    }
}

fn list(heading: &[StyledLine], body: &[Vec<StyledLine>], width: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for (number, row) in body.iter().enumerate() {
        if number > 0 {
            rows.push(StyledLine::new());
        }
        for (name, cell) in heading.iter().zip(row) {
            let line = StyledLine::new().exact(BOLD, name.text()).exact(BOLD, ": ").then(cell);
            rows.extend(line.wrap(width, Break::Words));
        }
    }
    rows
}
