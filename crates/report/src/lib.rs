//! Pages from judgements: terminal, Markdown, JSON and one self-contained HTML file.
