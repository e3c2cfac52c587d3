//! Plots as PDF, with a font of our own: nothing depends on what the machine has.
//!
//! The font is small enough to be embedded as it is. Its glyphs are named by their numbers, and a
//! table says which character each of them is, so that texts can be searched and copied.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use ttf_parser::{Face, GlyphId};

use crate::COLOURS;
use crate::canvas::{Anchor, Canvas, FONT_SIZE, Ink, LIGHT, Shape};
use crate::width::Width;

/// Why a PDF could not be made.
#[derive(Debug)]
pub struct PdfError(String);

impl std::fmt::Display for PdfError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the PDF cannot be made: {}", self.0)
    }
}

impl std::error::Error for PdfError {}

/// Open Sans, reduced; see `fonts/README.md`.
const FONT: &[u8] = include_bytes!("../fonts/OpenSans-Regular.ttf");

/// Points (1/72 inch) of a width in print.
fn points(width: Width) -> f64 {
    match width {
        Width::Page => 7.0 * 72.0,
        Width::Column => 3.5 * 72.0,
    }
}

/// Its name in the file.
const FONT_NAME: Name<'static> = Name(b"OpenSans-Regular");
/// Its name in the page.
const FONT_RESOURCE: Name<'static> = Name(b"F");
/// Effort of the compression, of 10.
const LEVEL: u8 = 8;
/// Parts of the em in which a PDF has widths (ISO 32000-1, 9.2.4).
const EM: f32 = 1_000.0;

// The objects of the file.
const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFORMATION: Ref = Ref::new(5);
const TYPE_0: Ref = Ref::new(6);
const CID_FONT: Ref = Ref::new(7);
const DESCRIPTOR: Ref = Ref::new(8);
const FONT_FILE: Ref = Ref::new(9);
const TO_UNICODE: Ref = Ref::new(10);

/// Glyphs have the numbers that they have in the font.
const IDENTITY: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

pub(crate) fn write_pdf(title: &str, canvas: &Canvas, width: Width) -> Result<Vec<u8>, PdfError> {
    let scale = points(width) / canvas.width;
    let [wide, high] = [canvas.width, canvas.height].map(|size| (size * scale) as f32);
    if !(wide > 0.0 && wide.is_finite() && high.is_finite()) {
        return Err(PdfError(format!("a page of {wide} by {high} points")));
    }
    let high = high.max(1.0);
    let mut pen = Pen::new()?;
    // A canvas begins at the top, a page at the bottom.
    let scale = scale as f32;
    pen.content.transform([scale, 0.0, 0.0, -scale, 0.0, high]);
    for shape in &canvas.shapes {
        pen.draw(shape);
    }
    let Pen {
        face,
        content,
        shown,
    } = pen;

    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES);
    pdf.pages(PAGES).kids([PAGE]).count(1);
    let mut page = pdf.page(PAGE);
    page.parent(PAGES).contents(CONTENT);
    page.media_box(Rect::new(0.0, 0.0, wide, high));
    page.resources().fonts().pair(FONT_RESOURCE, TYPE_0);
    page.finish();
    let content = compress_to_vec_zlib(&content.finish(), LEVEL);
    pdf.stream(CONTENT, &content).filter(Filter::FlateDecode);
    pdf.document_info(INFORMATION).title(TextStr(title));
    embed(&mut pdf, &face, &shown);
    Ok(pdf.finish())
}

/// Writes the font, with the widths of the glyphs that are `shown` and their characters.
fn embed(pdf: &mut Pdf, face: &Face<'_>, shown: &BTreeMap<u16, char>) {
    pdf.type0_font(TYPE_0)
        .base_font(FONT_NAME)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(CID_FONT)
        .to_unicode(TO_UNICODE);
    let mut font = pdf.cid_font(CID_FONT);
    font.subtype(CidFontType::Type2)
        .base_font(FONT_NAME)
        .system_info(IDENTITY)
        .font_descriptor(DESCRIPTOR)
        .cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = font.widths();
    for glyph in shown.keys() {
        widths.consecutive(*glyph, [EM * advance(face, GlyphId(*glyph))]);
    }
    widths.finish();
    font.finish();
    let units = f32::from(face.units_per_em());
    let of_em = |size: i16| EM * f32::from(size) / units;
    let whole = face.global_bounding_box();
    let [left, bottom, right, top] =
        [whole.x_min, whole.y_min, whole.x_max, whole.y_max].map(of_em);
    pdf.font_descriptor(DESCRIPTOR)
        .name(FONT_NAME)
        // Of more than the letters of the Adobe standard set.
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(left, bottom, right, top))
        .italic_angle(0.0)
        .ascent(of_em(face.ascender()))
        .descent(of_em(face.descender()))
        .cap_height(of_em(face.capital_height().unwrap_or(face.ascender())))
        // No reader needs it of a font that is embedded, and the standard requires it.
        .stem_v(80.0)
        .font_file2(FONT_FILE);
    let file = compress_to_vec_zlib(FONT, LEVEL);
    let mut stream = pdf.stream(FONT_FILE, &file);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Length1"), FONT.len() as i32);
    stream.finish();
    let mut characters = UnicodeCmap::<u16>::new(FONT_NAME, IDENTITY);
    for (glyph, character) in shown {
        characters.pair(*glyph, *character);
    }
    let characters = compress_to_vec_zlib(&characters.finish(), LEVEL);
    pdf.stream(TO_UNICODE, &characters)
        .filter(Filter::FlateDecode);
}

/// Width of a glyph, of the em.
fn advance(face: &Face<'_>, glyph: GlyphId) -> f32 {
    let advance = face.glyph_hor_advance(glyph).unwrap_or_default();
    f32::from(advance) / f32::from(face.units_per_em())
}

/// Draws shapes, with the font ready.
struct Pen {
    face: Face<'static>,
    content: Content,
    /// The glyphs of all texts so far, and the character that each is.
    shown: BTreeMap<u16, char>,
}

impl Pen {
    fn new() -> Result<Self, PdfError> {
        Ok(Self {
            face: Face::parse(FONT, 0).map_err(|error| PdfError(error.to_string()))?,
            content: Content::new(),
            shown: BTreeMap::new(),
        })
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Lines {
                lines,
                ink,
                width,
                dash,
            } => {
                let [red, green, blue] = colour(*ink);
                self.content
                    .set_stroke_rgb(red, green, blue)
                    .set_line_width(*width as f32)
                    .set_line_join(LineJoinStyle::RoundJoin)
                    .set_dash_pattern(dash.iter().map(|length| *length as f32), 0.0);
                for line in lines {
                    self.trace(line);
                }
                if lines.iter().any(|line| !line.is_empty()) {
                    self.content.stroke();
                }
            }
            Shape::Area { corners, ink } => {
                self.fill(*ink);
                if !corners.is_empty() {
                    self.trace(corners);
                    self.content.close_path().fill_nonzero();
                }
            }
            Shape::Bar {
                from: (x, y),
                size: (width, height),
                ink,
                ..
            } => {
                self.fill(*ink);
                self.content
                    .rect(*x as f32, *y as f32, *width as f32, *height as f32)
                    .fill_nonzero();
            }
            Shape::Circle {
                centre,
                radius,
                ink,
            } => {
                self.fill(*ink);
                self.circle(*centre, *radius);
                self.content.fill_nonzero();
            }
            Shape::Text { at, anchor, runs } => self.text(*at, *anchor, runs),
        }
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, runs: &[(String, Ink)]) {
        let runs: Vec<_> = runs
            .iter()
            .map(|(text, ink)| (self.shape(text), *ink))
            .collect();
        let whole: f32 = runs.iter().map(|(glyphs, _)| self.length(glyphs)).sum();
        let mut x = x as f32
            - match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => whole / 2.0,
                Anchor::End => whole,
            };
        for (glyphs, ink) in runs {
            self.fill(ink);
            let codes: Vec<u8> = glyphs
                .iter()
                .flat_map(|glyph| glyph.0.to_be_bytes())
                .collect();
            self.content
                .begin_text()
                .set_font(FONT_RESOURCE, FONT_SIZE as f32)
                // Upright, in a canvas that is turned over.
                .set_text_matrix([1.0, 0.0, 0.0, -1.0, x, y as f32])
                .show(Str(&codes))
                .end_text();
            x += self.length(&glyphs);
        }
    }

    /// The glyphs of a text; what the font lacks is a question mark.
    fn shape(&mut self, text: &str) -> Vec<GlyphId> {
        text.chars()
            .map(|character| {
                let glyph = self
                    .face
                    .glyph_index(character)
                    .or_else(|| self.face.glyph_index('?'))
                    .unwrap_or_default();
                self.shown.entry(glyph.0).or_insert(character);
                glyph
            })
            .collect()
    }

    fn length(&self, glyphs: &[GlyphId]) -> f32 {
        let ems: f32 = glyphs.iter().map(|glyph| advance(&self.face, *glyph)).sum();
        ems * FONT_SIZE as f32
    }

    fn trace(&mut self, points: &[(f64, f64)]) {
        for (index, (x, y)) in points.iter().enumerate() {
            let (x, y) = (*x as f32, *y as f32);
            match index {
                0 => self.content.move_to(x, y),
                _ => self.content.line_to(x, y),
            };
        }
    }

    /// Four curves whose control points make a circle to three digits.
    fn circle(&mut self, (x, y): (f64, f64), radius: f64) {
        let (x, y, r) = (x as f32, y as f32, radius as f32);
        let k = 0.552_285 * r;
        self.content
            .move_to(x + r, y)
            .cubic_to(x + r, y + k, x + k, y + r, x, y + r)
            .cubic_to(x - k, y + r, x - r, y + k, x - r, y)
            .cubic_to(x - r, y - k, x - k, y - r, x, y - r)
            .cubic_to(x + k, y - r, x + r, y - k, x + r, y)
            .close_path();
    }

    fn fill(&mut self, ink: Ink) {
        let [red, green, blue] = colour(ink);
        self.content.set_fill_rgb(red, green, blue);
    }
}

/// Red, green and blue, 0 to 1.
fn colour(ink: Ink) -> [f32; 3] {
    let index = match ink {
        Ink::Text => 0,
        Ink::Soft => 1,
        Ink::Rule => 2,
        Ink::Series(series) => 4 + series % COLOURS,
    };
    let part = |from: usize| u8::from_str_radix(&LIGHT[index].1[from..from + 2], 16);
    [1, 3, 5].map(|from| f32::from(part(from).unwrap_or_default()) / 255.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_plots_say() {
        let face = Face::parse(FONT, 0).expect("a font");
        let has_all = |text: &str| text.chars().all(|c| face.glyph_index(c).is_some());
        assert!(has_all(
            "RTTmin 80 ms, L = 2: −3.1 ± 0.25 % (≥ 1.5 × β/ρ) – „“… µs"
        ));
        assert!(!has_all("鰹"));
    }

    #[test]
    fn texts_are_as_wide_as_their_glyphs_and_can_be_found() {
        let mut pen = Pen::new().expect("a font");
        let glyphs = pen.shape("aa β");
        assert_eq!(glyphs[0], glyphs[1]);
        let each: f32 = glyphs.iter().map(|glyph| pen.length(&[*glyph])).sum();
        assert!((pen.length(&glyphs) - each).abs() < 1e-3 && each > 10.0);
        let mut characters: Vec<_> = pen.shown.values().collect();
        characters.sort();
        assert_eq!(characters, [&' ', &'a', &'β']);
        let unknown = pen.shape("鰹");
        assert_eq!(unknown, pen.shape("?"));
    }
}
