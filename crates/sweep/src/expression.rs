//! Derived columns: arithmetic over the columns of a row.
//!
//! Numbers, names of columns, `+ - * / ^`, parentheses, and the functions of [`FUNCTIONS`]. (Names
//! of columns have dots: the expression libraries that are kept up read `flows.0.acks` only within
//! braces, or are not under a permissive licence.) Functions are those of libm, so that all
//! machines have the same bits.

use std::fmt;

/// An expression that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    text: String,
    root: Node,
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Number(f64),
    Column(String),
    Negative(Box<Node>),
    Binary(char, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Function {
    Abs,
    Sqrt,
    Exp,
    Ln,
    Log10,
    Min,
    Max,
}

const NAMES: [(&str, Function); 7] = [
    ("abs", Function::Abs),
    ("sqrt", Function::Sqrt),
    ("exp", Function::Exp),
    ("ln", Function::Ln),
    ("log10", Function::Log10),
    ("min", Function::Min),
    ("max", Function::Max),
];

/// The functions that an expression may call; `min` and `max` take two or more numbers, the others
/// one.
pub const FUNCTIONS: &str = "abs, sqrt, exp, ln, log10, min, max";

/// Why a text is not an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionError {
    /// Where, in characters from 1.
    pub at: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.at, self.message)
    }
}

impl std::error::Error for ExpressionError {}

impl Expression {
    /// Reads an expression such as `flows.0.acks / flows.0.data_segments`.
    ///
    /// # Errors
    /// [`ExpressionError`] that says where it is none.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > LONGEST {
            return Err(ExpressionError {
                at: LONGEST + 1,
                message: format!("an expression has at most {LONGEST} bytes"),
            });
        }
        let mut parser = Parser {
            characters: text.chars().collect(),
            at: 0,
            depth: 0,
        };
        let root = parser.sum()?;
        match parser.peek() {
            None => Ok(Self {
                text: text.into(),
                root,
            }),
            Some(other) => Err(parser.fail(format!("{other:?} cannot stand here"))),
        }
    }

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns that it names, in order.
    pub fn columns(&self) -> Vec<&str> {
        fn collect<'a>(node: &'a Node, names: &mut Vec<&'a str>) {
            match node {
                Node::Number(_) => {}
                Node::Column(name) => names.push(name),
                Node::Negative(inner) => collect(inner, names),
                Node::Binary(_, left, right) => {
                    collect(left, names);
                    collect(right, names);
                }
                Node::Call(_, arguments) => {
                    for argument in arguments {
                        collect(argument, names);
                    }
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.root, &mut names);
        names
    }

    /// Its value; `None` when a column that it names has none, and when the result is not finite (a
    /// division by zero).
    pub fn value(&self, column: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        evaluate(&self.root, column).filter(|value| value.is_finite())
    }
}

fn evaluate(node: &Node, column: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
    Some(match node {
        Node::Number(number) => *number,
        Node::Column(name) => column(name)?,
        Node::Negative(inner) => -evaluate(inner, column)?,
        Node::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, column)?, evaluate(right, column)?);
            match operator {
                '+' => left + right,
                '-' => left - right,
                '*' => left * right,
                '/' => left / right,
                _ => libm::pow(left, right),
            }
        }
        Node::Call(function, arguments) => {
            let values: Option<Vec<f64>> = arguments
                .iter()
                .map(|argument| evaluate(argument, column))
                .collect();
            let values = values?;
            let first = *values.first()?;
            let rest = values.into_iter().skip(1);
            match function {
                Function::Abs => first.abs(),
                Function::Sqrt => first.sqrt(),
                Function::Exp => libm::exp(first),
                Function::Ln => libm::log(first),
                Function::Log10 => libm::log10(first),
                Function::Min => rest.fold(first, f64::min),
                Function::Max => rest.fold(first, f64::max),
            }
        }
    })
}

struct Parser {
    characters: Vec<char>,
    at: usize,
    depth: usize,
}

/// Parentheses, signs and powers within each other: a parser that calls itself must not run out of
/// stack.
const DEEPEST: usize = 64;
/// Nor must the walk over a long sum, whose tree is as deep as it has terms.
const LONGEST: usize = 2_000;

impl Parser {
    fn peek(&mut self) -> Option<char> {
        while self
            .characters
            .get(self.at)
            .is_some_and(|c| c.is_whitespace())
        {
            self.at += 1;
        }
        self.characters.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn fail(&self, message: impl Into<String>) -> ExpressionError {
        ExpressionError {
            at: self.at + 1,
            message: message.into(),
        }
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.product()?;
        while let Some(operator @ ('+' | '-')) = self.peek() {
            self.at += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.signed()?;
        while let Some(operator @ ('*' | '/')) = self.peek() {
            self.at += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(self.signed()?));
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Node, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fail(format!("more than {DEEPEST} levels within each other")));
        }
        let node = if self.take('-') {
            Node::Negative(Box::new(self.signed()?))
        } else {
            let base = self.atom()?;
            match self.take('^') {
                true => Node::Binary('^', Box::new(base), Box::new(self.signed()?)),
                false => base,
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.close()?;
                Ok(inner)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.named(),
            Some(other) => Err(self.fail(format!(
                "expected a number, a column or \"(\", got {other:?}"
            ))),
            None => Err(self.fail("the expression ends where a number or a column is needed")),
        }
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        match self.take(')') {
            true => Ok(()),
            false => Err(self.fail("expected \")\"")),
        }
    }

    fn number(&mut self) -> Result<Node, ExpressionError> {
        let begin = self.at;
        while let Some(c) = self.characters.get(self.at) {
            let is_sign_of_exponent =
                matches!(c, '+' | '-') && matches!(self.characters[self.at - 1], 'e' | 'E');
            if !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || is_sign_of_exponent) {
                break;
            }
            self.at += 1;
        }
        let text: String = self.characters[begin..self.at].iter().collect();
        match text.parse() {
            Ok(number) => Ok(Node::Number(number)),
            Err(_) => {
                self.at = begin;
                Err(self.fail(format!("{text:?} is not a number")))
            }
        }
    }

    fn named(&mut self) -> Result<Node, ExpressionError> {
        let begin = self.at;
        let part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        while self.characters.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        let name: String = self.characters[begin..self.at].iter().collect();
        if self.peek() != Some('(') {
            return Ok(Node::Column(name));
        }
        let Some((_, function)) = NAMES.iter().find(|(known, _)| *known == name) else {
            self.at = begin;
            return Err(self.fail(format!(
                "there is no function {name:?}; those there are: {FUNCTIONS}"
            )));
        };
        self.at += 1;
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        self.close()?;
        let is_list = matches!(function, Function::Min | Function::Max);
        if is_list != (arguments.len() > 1) {
            self.at = begin;
            let wanted = if is_list { "two or more" } else { "one" };
            return Err(self.fail(format!("{name} takes {wanted}, not {}", arguments.len())));
        }
        Ok(Node::Call(*function, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let columns = |name: &str| match name {
            "flows.0.acks" => Some(10.0),
            "flows.0.data_segments" => Some(200.0),
            "none" => None,
            _ => Some(0.0),
        };
        Expression::parse(text).unwrap().value(&columns)
    }

    #[test]
    fn arithmetic_is_that_of_school() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("16 / 4 / 2", 2.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("1.5e1 + .5", 15.5),
            ("1e-3*1e+3", 1.0),
            ("min(3, 1, 2) + max(1, 4)", 5.0),
            ("sqrt(16) + abs(-1) + log10(1000)", 8.0),
            ("flows.0.acks / flows.0.data_segments", 0.05),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_missing() {
        for text in ["none + 1", "1 / zero", "ln(0)", "sqrt(-1)", "0 * none"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn mistakes_say_where_they_are() {
        for (text, at) in [
            ("", 1),
            ("1 +", 4),
            ("1 2", 3),
            ("(1", 3),
            ("1.2.3", 1),
            ("log(3)", 1),
            ("sqrt(1, 2)", 1),
            ("min(1)", 1),
            ("a % b", 3),
            ("\u{e4} + 1", 1),
        ] {
            assert_eq!(Expression::parse(text).unwrap_err().at, at, "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(Expression::parse(&deep).is_err());
        assert!(Expression::parse(&"-".repeat(100_000)).is_err());
    }

    #[test]
    fn it_lists_its_columns() {
        let expression = Expression::parse("a.b / max(c, 1) - a.b").unwrap();
        assert_eq!(expression.columns(), ["a.b", "c", "a.b"]);
    }
}
