//! Compound commands.

use super::word::{Bracket, Patterns};
use super::{CompoundCommand, List, Reader, Refusal, SYNTAX, TestOperation, is_name};

/// The options of `[[ … ]]` with one operand.
const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";
/// The operators of `[[ … ]]` with two operands, without `<` and `>`.
const BINARY: [&str; 13] = ["==", "=", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

impl<'a> Reader<'a> {
    /// Reads a compound command without its redirections, if one follows.
    pub(super) fn compound(&mut self) -> Result<Option<CompoundCommand<'a>>, Refusal> {
        self.nested(|reader| {
            Ok(Some(if reader.skip("((") {
                CompoundCommand::Arithmetic(reader.arithmetic()?)
            } else if reader.skip("(") {
                let list = reader.filled_list()?;
                reader.expect(")")?;
                CompoundCommand::Subshell(list)
            } else if reader.skip_word("{") {
                CompoundCommand::Group(reader.list_to("}")?)
            } else if reader.skip_word("if") {
                CompoundCommand::If(reader.branches()?)
            } else if reader.skip_word("while") || reader.skip_word("until") {
                CompoundCommand::Loop { condition: reader.filled_list()?, body: reader.body()? }
            } else if reader.skip_word("for") {
                reader.for_loop()?
            } else if reader.skip_word("case") {
                reader.case()?
            } else if reader.skip_word("[[") {
                let mut operations = Vec::new();
                reader.test(&mut operations)?;
                reader.expect_word("]]")?;
                CompoundCommand::Test(operations)
            } else if reader.follows("coproc") {
                return Err("`coproc` is not analysed; run the command plainly");
            } else if reader.follows("select") {
                return Err("`select` is not analysed; write the choice out");
            } else {
                return Ok(None);
            }))
        })
    }

    /// Reads an expression after `((`, and its brackets.
    fn arithmetic(&mut self) -> Result<&'a str, Refusal> {
        let start = self.at;
        self.bracketed(Bracket::Arithmetic)?;
        let expression = self.text_from(start);
        self.expect_one_line(expression)?;
        // Without the second bracket, these are two subshells.
        self.expect(")")?;
        Ok(expression.strip_suffix(')').unwrap_or(expression))
    }

    fn list_to(&mut self, end: &str) -> Result<List<'a>, Refusal> {
        let list = self.filled_list()?;
        self.expect_word(end)?;
        Ok(list)
    }

    /// Reads the body of a loop.
    fn body(&mut self) -> Result<List<'a>, Refusal> {
        self.expect_word("do")?;
        self.list_to("done")
    }

    /// Reads the conditions and branches after `if`, up to `fi`.
    fn branches(&mut self) -> Result<Vec<List<'a>>, Refusal> {
        let mut lists = vec![self.list_to("then")?, self.filled_list()?];
        loop {
            if self.skip_word("elif") {
                lists.push(self.list_to("then")?);
                lists.push(self.filled_list()?);
            } else if self.skip_word("else") {
                lists.push(self.list_to("fi")?);
                return Ok(lists);
            } else {
                self.expect_word("fi")?;
                return Ok(lists);
            }
        }
    }

    fn for_loop(&mut self) -> Result<CompoundCommand<'a>, Refusal> {
        self.skip_blanks();
        if self.skip("((") {
            let expressions: Vec<&str> = self.arithmetic()?.split(';').collect();
            if expressions.len() != 3 {
                return Err(SYNTAX);
            }
            self.end_of_header()?;
            return Ok(CompoundCommand::ArithmeticFor { expressions, body: self.body()? });
        }
        let variable = self.word(Patterns::None)?;
        if !is_name(variable) {
            return Err(SYNTAX);
        }
        let has_newline = self.skip_lines()?;
        let mut words = Vec::new();
        if self.skip_word("in") {
            loop {
                self.skip_blanks();
                match self.word(Patterns::Extended)? {
                    "" => break,
                    word => words.push(word),
                }
            }
            if !self.end_of_header()? {
                return Err(SYNTAX);
            }
        } else if !has_newline {
            self.end_of_header()?;
        }
        Ok(CompoundCommand::For { variable, words, body: self.body()? })
    }

    /// Skips the separator before the body of a loop; returns `false` if there is none.
    fn end_of_header(&mut self) -> Result<bool, Refusal> {
        self.skip_blanks();
        let has_separator = self.skip(";");
        Ok(self.skip_lines()? || has_separator)
    }

    fn case(&mut self) -> Result<CompoundCommand<'a>, Refusal> {
        self.skip_blanks();
        let word = self.word(Patterns::None)?;
        if word.is_empty() {
            return Err(SYNTAX);
        }
        self.skip_lines()?;
        self.expect_word("in")?;
        let mut branches = Vec::new();
        loop {
            self.skip_lines()?;
            if self.skip_word("esac") {
                return Ok(CompoundCommand::Case { word, branches });
            }
            branches.push((self.patterns()?, self.list()?));
            if !(self.skip(";;&") || self.skip(";;") || self.skip(";&") || self.follows("esac")) {
                return Err(SYNTAX);
            }
        }
    }

    /// Reads the patterns of a branch, and the bracket after them.
    fn patterns(&mut self) -> Result<Vec<&'a str>, Refusal> {
        let mut patterns = Vec::new();
        self.skip("(");
        loop {
            self.skip_blanks();
            match self.word(Patterns::Extended)? {
                "" | "esac" => return Err(SYNTAX),
                pattern => patterns.push(pattern),
            }
            self.skip_blanks();
            if self.skip(")") {
                return Ok(patterns);
            }
            self.expect("|")?;
        }
    }

    /// Reads a condition up to `]]` or a closing bracket.
    fn test(&mut self, operations: &mut Vec<TestOperation<'a>>) -> Result<(), Refusal> {
        loop {
            self.skip_lines()?;
            if self.skip_word("!") {
                // A pattern in some shells.
                if self.peek() == Some(b'(') {
                    return Err(SYNTAX);
                }
                continue;
            }
            if self.skip("(") {
                self.nested(|reader| reader.test(operations))?;
                self.expect(")")?;
            } else {
                operations.push(self.operation()?);
            }
            self.skip_lines()?;
            if !self.skip("&&") && !self.skip("||") {
                return Ok(());
            }
        }
    }

    fn operation(&mut self) -> Result<TestOperation<'a>, Refusal> {
        let first = self.operand(Patterns::None)?;
        self.skip_blanks();
        if first.strip_prefix('-').is_some_and(|option| option.len() == 1 && UNARY.contains(option)) {
            return Ok(TestOperation { operator: first, operands: vec![self.operand(Patterns::None)?] });
        }
        let start = self.at;
        let is_binary = !self.opens_process() && (self.skip("<") || self.skip(">"))
            || BINARY.iter().any(|word| self.skip_word(word));
        let operator = self.text_from(start);
        let mut operands = vec![first];
        if is_binary {
            self.skip_blanks();
            operands.push(self.operand(if operator == "=~" { Patterns::Regular } else { Patterns::Extended })?);
        }
        Ok(TestOperation { operator, operands })
    }

    fn operand(&mut self, patterns: Patterns) -> Result<&'a str, Refusal> {
        self.expect_no_descriptor()?;
        match self.word(patterns)? {
            "" | "]]" => Err(SYNTAX),
            word => Ok(word),
        }
    }
}
