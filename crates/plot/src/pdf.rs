//! Plots as PDF, by krilla, with a font of our own: nothing depends on what the machine has.

use std::sync::OnceLock;

use krilla::Document;
use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect, Transform};
use krilla::metadata::Metadata;
use krilla::page::PageSettings;
use krilla::paint::{Fill, LineJoin, Stroke, StrokeDash};
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

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

pub(crate) fn write_pdf(title: &str, canvas: &Canvas, width: Width) -> Result<Vec<u8>, PdfError> {
    let scale = points(width) / canvas.width;
    let [wide, high] = [canvas.width, canvas.height].map(|size| (size * scale) as f32);
    let settings = PageSettings::from_wh(wide, high.max(1.0))
        .ok_or_else(|| PdfError(format!("a page of {wide} by {high} points")))?;
    let mut pen = Pen::new()?;
    let mut document = Document::new();
    document.set_metadata(Metadata::new().title(title.to_owned()));
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    surface.push_transform(&Transform::from_scale(scale as f32, scale as f32));
    for shape in &canvas.shapes {
        pen.draw(&mut surface, shape);
    }
    surface.pop();
    surface.finish();
    page.finish();
    document
        .finish()
        .map_err(|error| PdfError(format!("{error:?}")))
}

/// Draws shapes, with the font ready.
struct Pen {
    font: Font,
    glyphs: FontRef<'static>,
}

impl Pen {
    fn new() -> Result<Self, PdfError> {
        static OURS: OnceLock<Option<Font>> = OnceLock::new();
        let font = OURS.get_or_init(|| Font::new(FONT.into(), 0)).clone();
        Ok(Self {
            font: font.ok_or_else(|| PdfError("its font cannot be read".into()))?,
            glyphs: FontRef::new(FONT).map_err(|error| PdfError(error.to_string()))?,
        })
    }

    fn draw(&mut self, surface: &mut Surface<'_>, shape: &Shape) {
        match shape {
            Shape::Lines {
                lines,
                ink,
                width,
                dash,
            } => {
                let mut path = PathBuilder::new();
                for line in lines {
                    trace(&mut path, line);
                }
                let dash = (!dash.is_empty()).then(|| StrokeDash {
                    array: dash.iter().map(|length| *length as f32).collect(),
                    offset: 0.0,
                });
                surface.set_fill(None);
                surface.set_stroke(Some(Stroke {
                    paint: colour(*ink).into(),
                    width: *width as f32,
                    line_join: LineJoin::Round,
                    dash,
                    ..Stroke::default()
                }));
                paint(surface, path.finish());
            }
            Shape::Area { corners, ink } => {
                let mut path = PathBuilder::new();
                trace(&mut path, corners);
                path.close();
                fill(surface, *ink);
                paint(surface, path.finish());
            }
            Shape::Bar {
                from: (x, y),
                size: (width, height),
                ink,
                ..
            } => {
                let mut path = PathBuilder::new();
                let rect = Rect::from_xywh(*x as f32, *y as f32, *width as f32, *height as f32);
                if let Some(rect) = rect {
                    path.push_rect(rect);
                }
                fill(surface, *ink);
                paint(surface, path.finish());
            }
            Shape::Circle {
                centre,
                radius,
                ink,
            } => {
                fill(surface, *ink);
                paint(surface, circle(*centre, *radius));
            }
            Shape::Text { at, anchor, runs } => self.text(surface, *at, *anchor, runs),
        }
    }

    fn text(
        &self,
        surface: &mut Surface<'_>,
        (x, y): (f64, f64),
        anchor: Anchor,
        runs: &[(String, Ink)],
    ) {
        let runs: Vec<_> = runs
            .iter()
            .map(|(text, ink)| (text, *ink, self.shape(text)))
            .collect();
        let whole: f32 = runs.iter().map(|(.., glyphs)| length(glyphs)).sum();
        let mut x = x as f32
            - match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => whole / 2.0,
                Anchor::End => whole,
            };
        for (text, ink, glyphs) in runs {
            fill(surface, ink);
            let start = Point::from_xy(x, y as f32);
            surface.draw_glyphs(
                start,
                &glyphs,
                self.font.clone(),
                text,
                FONT_SIZE as f32,
                false,
            );
            x += length(&glyphs);
        }
    }

    /// The glyphs of a text, each as wide as it is; what the font lacks is a question mark.
    fn shape(&self, text: &str) -> Vec<KrillaGlyph> {
        let names = self.glyphs.charmap();
        let widths = self
            .glyphs
            .glyph_metrics(Size::unscaled(), LocationRef::default());
        let em = self.font.units_per_em();
        text.char_indices()
            .map(|(start, character)| {
                let glyph = names
                    .map(character)
                    .or_else(|| names.map('?'))
                    .unwrap_or_default();
                let advance = widths.advance_width(glyph).unwrap_or_default() / em;
                let range = start..start + character.len_utf8();
                KrillaGlyph::new(
                    GlyphId::new(glyph.to_u32()),
                    advance,
                    0.0,
                    0.0,
                    0.0,
                    range,
                    None,
                )
            })
            .collect()
    }
}

fn length(glyphs: &[KrillaGlyph]) -> f32 {
    let ems: f32 = glyphs.iter().map(|glyph| glyph.x_advance).sum();
    ems * FONT_SIZE as f32
}

/// Whether texts can be shown as they are.
#[cfg(test)]
fn has_all(text: &str) -> bool {
    let font = FontRef::new(FONT).expect("a font");
    text.chars()
        .all(|character| font.charmap().map(character).is_some())
}

fn trace(path: &mut PathBuilder, points: &[(f64, f64)]) {
    for (index, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        match index {
            0 => path.move_to(x, y),
            _ => path.line_to(x, y),
        }
    }
}

/// Four curves whose control points make a circle to three digits.
fn circle((x, y): (f64, f64), radius: f64) -> Option<Path> {
    let (x, y, r) = (x as f32, y as f32, radius as f32);
    let k = 0.552_285 * r;
    let mut path = PathBuilder::new();
    path.move_to(x + r, y);
    path.cubic_to(x + r, y + k, x + k, y + r, x, y + r);
    path.cubic_to(x - k, y + r, x - r, y + k, x - r, y);
    path.cubic_to(x - r, y - k, x - k, y - r, x, y - r);
    path.cubic_to(x + k, y - r, x + r, y - k, x + r, y);
    path.close();
    path.finish()
}

fn fill(surface: &mut Surface<'_>, ink: Ink) {
    surface.set_stroke(None);
    surface.set_fill(Some(Fill {
        paint: colour(ink).into(),
        ..Fill::default()
    }));
}

/// Draws a path, unless nothing is left of it.
fn paint(surface: &mut Surface<'_>, path: Option<Path>) {
    if let Some(path) = path {
        surface.draw_path(&path);
    }
}

fn colour(ink: Ink) -> rgb::Color {
    let index = match ink {
        Ink::Text => 0,
        Ink::Soft => 1,
        Ink::Rule => 2,
        Ink::Series(series) => 4 + series % COLOURS,
    };
    let part = |from: usize| u8::from_str_radix(&LIGHT[index].1[from..from + 2], 16);
    let [red, green, blue] = [1, 3, 5].map(|from| part(from).unwrap_or_default());
    rgb::Color::new(red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_plots_say() {
        assert!(has_all(
            "RTTmin 80 ms, L = 2: −3.1 ± 0.25 % (≥ 1.5 × β/ρ) – „“… µs"
        ));
        assert!(!has_all("鰹"));
    }
}
