//! What registries say an image is made of: manifests, and lists of them by platform.

use isobench_schema::ids::ImageDigest;
use isobench_schema::images::ImagePart;
use serde::Deserialize;

use super::platform::Platform;

/// The kinds of manifests that are understood, for the header `Accept`.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// The kinds of lists.
const LISTS: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];

/// The kinds of manifests of one image.
const IMAGES: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];

/// Types that say nothing of what they are.
const PLAIN: [&str; 4] = ["application/json", "application/octet-stream", "text/plain", ""];

/// The most layers of an image.
const MOST_LAYERS: usize = 1024;

/// What a tag or a digest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// One image.
    Image(ImageManifest),
    /// One image for each platform.
    List(Vec<ListedManifest>),
}

/// What one image is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageManifest {
    /// Its configuration.
    pub config: ImagePart,
    /// Its layers, the lowest first.
    pub layers: Vec<ImagePart>,
    /// Whether a layer lies elsewhere, at an address that the manifest names.
    pub has_foreign_layers: bool,
}

impl ImageManifest {
    /// Returns the configuration and each layer once.
    pub fn parts(&self) -> Vec<&ImagePart> {
        let mut parts: Vec<&ImagePart> = Vec::new();
        for part in std::iter::once(&self.config).chain(&self.layers) {
            if !parts.iter().any(|known| known.digest == part.digest) {
                parts.push(part);
            }
        }
        parts
    }
}

/// The image of a platform in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedManifest {
    /// Its manifest.
    pub manifest: ImagePart,
    /// The platform; absent if the list doesn't say it.
    pub platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    size: u64,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    urls: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    schema_version: Option<u64>,
    #[serde(default)]
    manifests: Option<Vec<Descriptor>>,
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Option<Vec<Descriptor>>,
}

impl Descriptor {
    fn part(&self) -> Result<ImagePart, String> {
        let digest = ImageDigest::new(self.digest.as_str())
            .map_err(|_error| format!("`{}` is no SHA-256 digest", self.digest.chars().take(80).collect::<String>()))?;
        Ok(ImagePart { digest, bytes: self.size })
    }
}

impl ImageManifest {
    /// Returns what must be fetched of it, in bytes; none if the sum is no size at all.
    pub fn bytes(&self) -> Option<u64> {
        self.layers.iter().try_fold(self.config.bytes, |sum, layer| sum.checked_add(layer.bytes))
    }
}

/// Reads a manifest. `content_type` is what the registry says that it is.
///
/// # Errors
/// Returns what is wrong with it, as the end of a sentence.
pub(super) fn read(bytes: &[u8], content_type: &str) -> Result<Manifest, String> {
    let body: Body =
        serde_json::from_slice(bytes).map_err(|error| format!("it is said to be `{content_type}`, and {error}"))?;
    if body.schema_version == Some(1) {
        return Err("it is an image of the old schema 1, which says no sizes".to_owned());
    }
    let own = body.media_type.clone().filter(|own| !own.is_empty());
    let kind = match &own {
        Some(own) if !PLAIN.contains(&content_type) && content_type != own => {
            return Err(format!("the registry says that it is `{content_type}`, and it says of itself `{own}`"));
        }
        Some(own) => own.as_str(),
        None => content_type,
    };
    let is_list = LISTS.contains(&kind) || PLAIN.contains(&kind) && body.manifests.is_some();
    let is_image = IMAGES.contains(&kind) || PLAIN.contains(&kind) && body.config.is_some();
    match (is_list, is_image, body) {
        (true, false, Body { manifests: Some(manifests), .. }) => list(manifests).map(Manifest::List),
        (false, true, Body { config: Some(config), layers: Some(layers), .. }) => {
            image(&config, &layers).map(Manifest::Image)
        }
        _ => Err(format!("`{kind}` is no kind of image, or lacks its parts")),
    }
}

fn list(manifests: Vec<Descriptor>) -> Result<Vec<ListedManifest>, String> {
    let one =
        |descriptor: Descriptor| Ok(ListedManifest { manifest: descriptor.part()?, platform: descriptor.platform });
    manifests.into_iter().map(one).collect()
}

fn image(config: &Descriptor, layers: &[Descriptor]) -> Result<ImageManifest, String> {
    if layers.len() > MOST_LAYERS {
        return Err(format!("it has {} layers, more than {MOST_LAYERS}", layers.len()));
    }
    let manifest = ImageManifest {
        config: config.part()?,
        layers: layers.iter().map(Descriptor::part).collect::<Result<_, _>>()?,
        has_foreign_layers: layers.iter().any(|layer| !layer.urls.is_empty()),
    };
    if manifest.bytes().is_none() {
        return Err("the sizes of its layers are no sizes".to_owned());
    }
    Ok(manifest)
}

/// What an image says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageConfig {
    pub(super) platform: Platform,
    pub(super) created: Option<String>,
    pub(super) revision: Option<String>,
}

/// The label by which an image says what it holds.
const REVISION_LABEL: &str = "org.opencontainers.image.revision";
/// The longest text that is taken from an image, in characters.
const LONGEST_TEXT: usize = 200;

impl ImageConfig {
    /// Reads an image's configuration.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(flatten)]
            platform: Platform,
            #[serde(default)]
            created: Option<String>,
            #[serde(default)]
            config: Option<Inner>,
        }
        #[derive(Deserialize)]
        struct Inner {
            #[serde(default, rename = "Labels")]
            labels: Option<std::collections::BTreeMap<String, String>>,
        }
        let whole: Whole =
            serde_json::from_slice(bytes).map_err(|error| format!("its configuration can't be read: {error}"))?;
        let short =
            |text: String| -> String { text.chars().filter(|sign| !sign.is_control()).take(LONGEST_TEXT).collect() };
        let labels = whole.config.and_then(|config| config.labels).unwrap_or_default();
        Ok(Self {
            platform: whole.platform,
            created: whole.created.map(short),
            revision: labels.get(REVISION_LABEL).cloned().map(short).filter(|revision| !revision.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";

    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    fn image_text(size: &str, kind: &str) -> String {
        format!(
            r#"{{"schemaVersion":2,{kind}"config":{{"digest":"{}","size":10}},"layers":[{{"digest":"{}","size":{size}}},{{"digest":"{}","size":5}}]}}"#,
            digest('a'),
            digest('b'),
            digest('c')
        )
    }

    #[test]
    fn an_image_is_its_configuration_and_its_layers() {
        for content_type in [IMAGE, "application/json", "application/octet-stream"] {
            let Manifest::Image(image) = read(image_text("7", "").as_bytes(), content_type).unwrap() else {
                panic!("it is an image")
            };
            assert_eq!((image.bytes(), image.layers.len(), image.has_foreign_layers), (Some(22), 2, false));
        }
    }

    #[test]
    fn a_list_has_an_image_for_each_platform() {
        let text = format!(
            r#"{{"schemaVersion":2,"manifests":[{{"digest":"{}","size":3,"platform":{{"os":"linux","architecture":"amd64"}}}},
                {{"digest":"{}","size":4}}]}}"#,
            digest('a'),
            digest('b')
        );
        let Manifest::List(list) = read(text.as_bytes(), LISTS[1]).unwrap() else { panic!("it is a list") };
        assert_eq!(list[0].platform.as_ref().unwrap().to_string(), "linux/amd64");
        assert_eq!((list[1].platform.as_ref(), list[1].manifest.bytes), (None, 4));
    }

    #[test]
    fn what_is_no_image_says_why() {
        let huge = image_text("18446744073709551615", "");
        let other = image_text("7", r#""mediaType":"application/vnd.oci.image.index.v1+json","#);
        let bad = image_text("7", "").replace(&digest('b'), "sha256:xyz");
        for (text, kind, expected) in [
            ("{", IMAGE, "it is said to be"),
            ("<html>", "text/html", "it is said to be `text/html`"),
            (r#"{"schemaVersion":1}"#, IMAGE, "schema 1"),
            ("{}", IMAGE, "lacks its parts"),
            (&huge, IMAGE, "no sizes"),
            (&other, IMAGE, "says of itself"),
            (&bad, IMAGE, "`sha256:xyz` is no SHA-256 digest"),
            (&image_text("-1", ""), IMAGE, "it is said to be"),
            (&image_text("7", ""), "image/png", "`image/png` is no kind of image"),
        ] {
            let error = read(text.as_bytes(), kind).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_image_says_when_it_was_made_and_of_what() {
        let text = r#"{"architecture":"amd64","os":"linux","created":"2026-01-02T03:04:05Z",
            "config":{"Labels":{"org.opencontainers.image.revision":"abc"}}}"#;
        let config = ImageConfig::read(text.as_bytes()).unwrap();
        assert_eq!((config.platform.to_string(), config.revision.as_deref()), ("linux/amd64".to_owned(), Some("abc")));
        let bare = ImageConfig::read(br#"{"architecture":"arm64","os":"linux","config":{"Labels":null}}"#).unwrap();
        assert_eq!((bare.created, bare.revision), (None, None));
        assert!(ImageConfig::read(b"[]").is_err());
    }
}
