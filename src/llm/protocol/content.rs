//! Content of messages: a text, or parts of which some are images.

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::llm::{ChatMessage, Image};

/// A text, or a list of parts. All protocols allow both.
#[derive(Debug)]
pub(crate) enum Content<T> {
    Text(String),
    Parts(Vec<T>),
}

impl<T> Default for Content<T> {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

impl<T> Content<T> {
    /// Its parts. A text has none.
    pub(crate) fn parts(&self) -> &[T] {
        match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Content<T> {
    // Not an untagged enum: serde buffers those, and a raw value cannot be read from the buffer.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map(Self::Text),
            Some(b'[') => serde_json::from_str(raw).map(Self::Parts),
            Some(b'n') => Ok(Self::default()),
            _ => return Err(D::Error::custom("the content is neither text nor a list of parts")),
        }
        .map_err(D::Error::custom)
    }
}

/// A part of a message's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentPart<'a> {
    Text(&'a str),
    /// The URL of an image.
    Image(&'a str),
}

/// The content of `message` in its order. No text of it is empty.
pub(crate) fn parts(message: &ChatMessage) -> impl Iterator<Item = ContentPart<'_>> {
    let ChatMessage { content, images, .. } = message;
    let mut start = 0;
    let mut out = Vec::with_capacity(images.len() * 2 + 1);
    let text = |start: usize, end: usize| content.get(start..end).filter(|text| !text.is_empty());
    for Image { at, url } in images {
        if let Some(before) = text(start, *at) {
            out.push(ContentPart::Text(before));
            start = *at;
        }
        out.push(ContentPart::Image(url));
    }
    out.extend(text(start, content.len()).map(ContentPart::Text));
    out.into_iter()
}

/// Content that is being put together from parts.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
    after_text: bool,
}

impl Gathered {
    /// Adds a text. `separator` comes between two texts.
    pub(crate) fn text(&mut self, text: &str, separator: &str) {
        if self.after_text {
            self.text.push_str(separator);
        }
        self.text.push_str(text);
        self.after_text = true;
    }

    /// Adds an image.
    pub(crate) fn image(&mut self, url: String) {
        self.images.push(Image { at: self.text.len(), url });
        self.after_text = false;
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        !self.after_text && self.images.is_empty()
    }

    /// Moves the content into `message`.
    pub(crate) fn into_message(self, message: ChatMessage) -> ChatMessage {
        ChatMessage { content: self.text, images: self.images, ..message }
    }
}

/// The media type and the base64 data of a `data:` URL.
pub(crate) fn data_of(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// The `data:` URL of an image.
pub(crate) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// A tool's arguments as an object, with the keys in the model's order. A text that is no object
/// becomes `{}`, since the protocols with objects cannot express it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(pub(crate) &'a str);

impl<'a> Arguments<'a> {
    fn object(self) -> Option<&'a RawValue> {
        serde_json::from_str::<&RawValue>(self.0).ok().filter(|raw| raw.get().starts_with('{'))
    }

    /// The JSON text of the object.
    pub(crate) fn text(self) -> &'a str {
        self.object().map_or("{}", RawValue::get)
    }
}

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.object() {
            Some(raw) => raw.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

/// What becomes of reasoning that no endpoint has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsigned {
    /// It gets the signature [`UNSIGNED`].
    Marked,
    /// It is left out: an endpoint refuses it.
    LeftOut,
}

/// The signature of reasoning that no endpoint has signed. Clients keep it without looking.
const UNSIGNED: &str = "dGVybXNtaXRo";

/// The reasoning of `message` with its signature, if it is written.
pub(crate) fn signed(message: &ChatMessage, unsigned: Unsigned) -> Option<(&str, &str)> {
    let marked = (unsigned == Unsigned::Marked).then_some(UNSIGNED);
    Some((message.reasoning.as_deref()?, message.signature.as_deref().or(marked)?))
}

/// The blocks for which a signature stands, if there is more than one.
pub(crate) fn signed_blocks(message: &ChatMessage) -> Option<Vec<Value>> {
    let list = message.signature.as_deref().filter(|signature| signature.starts_with('['))?;
    serde_json::from_str(list).ok()
}

/// Reasoning of an assistant's message that is being put together from blocks.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    text: String,
    signature: Option<String>,
    /// Every block. An endpoint wants all of them back, unchanged.
    blocks: Vec<Value>,
    /// A block has no readable text.
    has_hidden: bool,
}

impl Thoughts {
    /// Adds a block with a readable text.
    pub(crate) fn add(&mut self, text: &str, signature: Option<String>, block: Value) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.signature = signature.filter(|signature| !signature.is_empty() && signature != UNSIGNED);
        self.blocks.push(block);
    }

    /// Adds a block without a readable text.
    pub(crate) fn add_hidden(&mut self, block: Value) {
        self.blocks.push(block);
        self.has_hidden = true;
    }

    /// Moves them into `message`. The signature of one readable block is kept as it is. Otherwise,
    /// the list of all blocks is the signature.
    pub(crate) fn into_message(self, message: ChatMessage) -> ChatMessage {
        let signature = match self.blocks.as_slice() {
            [] => return message,
            [_] if !self.has_hidden => self.signature,
            blocks => serde_json::to_string(blocks).ok(),
        };
        let reasoning = Some(self.text).filter(|text| !text.is_empty() || signature.is_some());
        ChatMessage { reasoning, signature, ..message }
    }
}
