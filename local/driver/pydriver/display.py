# Copyright 2026 The Caddy Code Interpreter Authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""IPython.display for code that runs where IPython is not installed."""

import binascii
import os

# Set by the kernel: its Shell, which publishes what is displayed.
shell = None


def _escape(text):
    import html

    return html.escape(text)


def display(
    *objs,
    include=None,
    exclude=None,
    metadata=None,
    transient=None,
    display_id=None,
    raw=False,
    clear=False,
    **kwargs,
):
    """Shows values in the output of the cell."""
    handle = None
    if display_id is not None:
        handle = DisplayHandle(None if display_id is True else display_id)
    elif kwargs.get("update"):
        raise TypeError("display_id required for update_display")
    if kwargs.get("update"):
        return handle  # what has been delivered cannot be changed
    for value in objs:
        if raw:
            shell.publish(value, False)
        else:
            shell.show(value, False, include, exclude)
    return handle


def update_display(obj, *, display_id, **kwargs):
    """Replaces what a display showed; the server has no event for it."""
    display(obj, display_id=display_id, update=True, **kwargs)


def clear_output(wait=False):
    """Delivers the text so far; the server has no event for clearing it."""
    shell.link.flush()


def publish_display_data(data, metadata=None, *, transient=None, **kwargs):
    """Shows representations by MIME type."""
    shell.publish(data, False)


class DisplayHandle:
    """A display that can be updated."""

    def __init__(self, display_id=None):
        self.display_id = display_id or binascii.hexlify(os.urandom(16)).decode()

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id

    def display(self, obj, **kwargs):
        display(obj, display_id=self.display_id, **kwargs)

    def update(self, obj, **kwargs):
        update_display(obj, display_id=self.display_id, **kwargs)


class DisplayObject:
    """A value that is shown as what it holds."""

    _read_flags = "r"
    _show_mem_addr = False
    metadata = None

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if isinstance(data, (os.PathLike, str)):
            data = str(data)
            if url is None and filename is None and data.startswith(("http://", "https://")):
                url, data = data, None
        self.data, self.url, self.metadata = data, url, metadata or {}
        self.filename = None if filename is None else str(filename)
        self.reload()
        self._check_data()

    def __repr__(self):
        if self._show_mem_addr:
            return super().__repr__()
        return "<%s.%s object>" % (type(self).__module__, type(self).__name__)

    def _check_data(self):
        pass

    def reload(self):
        """Reads the data from its file or address."""
        if self.filename is not None:
            encoding = None if "b" in self._read_flags else "utf-8"
            with open(self.filename, self._read_flags, encoding=encoding) as file:
                self.data = file.read()
        elif self.url is not None:
            from urllib.request import urlopen

            self.data = urlopen(self.url).read()
            if "b" not in self._read_flags:
                self.data = self.data.decode("utf-8", "replace")


class TextDisplayObject(DisplayObject):
    def _check_data(self):
        if self.data is not None and not isinstance(self.data, str):
            raise TypeError("%s expects text, not %r" % (type(self).__name__, self.data))


class Pretty(TextDisplayObject):
    def _repr_pretty_(self, printer, cycle):
        printer.text(self.data)


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.data

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.data


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return "$\\displaystyle %s$" % self.data.strip("$")


class SVG(DisplayObject):
    def _repr_svg_(self):
        data = self.data
        if isinstance(data, bytes):
            data = data.decode("utf-8", "replace")
        start = data.find("<svg")
        return data[start:] if start >= 0 else data


class JSON(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **kw):
        self.expanded, self.root = expanded, root
        super().__init__(data, url, filename, metadata)

    def _check_data(self):
        if self.data is not None and not isinstance(self.data, (dict, list, str)):
            raise TypeError("JSON expects JSONable dict or list, not %r" % (self.data,))
        if isinstance(self.data, str):
            import json

            self.data = json.loads(self.data)

    def _repr_json_(self):
        return self.data


class GeoJSON(JSON):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/geo+json": self.data, "text/plain": "<IPython.display.GeoJSON object>"}


class Javascript(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)

    def _repr_javascript_(self):
        return self.data


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def __repr__(self):
        return self.data

    def _repr_html_(self):
        return "<pre>%s</pre>" % _escape(self.data)


class ProgressBar(DisplayObject):
    def __init__(self, total):
        self.total, self._progress = total, 0
        super().__init__()

    def __repr__(self):
        done = int(60 * self._progress / self.total) if self.total else 0
        return "[%s] %s/%s" % ("=" * done + " " * (60 - done), self._progress, self.total)

    def _repr_html_(self):
        return "<progress style='width:60ex' max='%s' value='%s'></progress>" % (
            self.total,
            self._progress,
        )

    @property
    def progress(self):
        return self._progress

    @progress.setter
    def progress(self, value):
        self._progress = value

    def display(self):
        display(self)

    update = display

    def __iter__(self):
        self.display()
        self._progress = -1
        return self

    def __next__(self):
        self._progress += 1
        if self._progress < self.total:
            return self._progress
        raise StopIteration


class Image(DisplayObject):
    _read_flags = "rb"
    _MAGIC = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None, retina=False, unconfined=False, metadata=None, alt=None):
        if isinstance(data, (str, os.PathLike)) and not str(data).startswith(("http://", "https://")):
            filename, data = str(data), None
        self.embed = embed if embed is not None else url is None
        self.width, self.height, self.alt, self.format = width, height, alt, format
        super().__init__(data, url if self.embed else None, filename, metadata)
        self.url = url
        if self.data is None and url is None:
            raise ValueError("No image data found. Expecting filename, url, or data.")
        if self.format is None:
            kinds = [kind for magic, kind in self._MAGIC if (self.data or b"").startswith(magic)]
            self.format = kinds[0] if kinds else "png"
        self.format = {"jpg": "jpeg"}.get(self.format.lower(), self.format.lower())

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.embed and isinstance(self.data, bytes):
            return {"image/" + self.format: self.data}
        sizes = "".join(
            ' %s="%s"' % (name, value)
            for name, value in (("width", self.width), ("height", self.height), ("alt", self.alt))
            if value
        )
        return {"text/html": '<img src="%s"%s/>' % (_escape(self.url or ""), sizes)}


class _Media(DisplayObject):
    """A sound or a film, inline in HTML."""

    _read_flags = "rb"
    _tag, _type = "video", "video/mp4"

    def __init__(self, data=None, url=None, filename=None, embed=False, mimetype=None, rate=None, autoplay=False, width=None, height=None, html_attributes="controls", **kwargs):
        if isinstance(data, (str, os.PathLike)):
            name = str(data)
            if name.startswith(("http://", "https://")):
                url, data = name, None
            else:
                filename, data = name, None
        self.mimetype, self.rate, self.source = mimetype or self._type, rate, url
        if data is not None and not isinstance(data, (bytes, bytearray)):
            data = self._encode(data)
        super().__init__(data, None, filename)

    def _encode(self, data):
        raise TypeError("%s expects bytes, a file name or an address" % type(self).__name__)

    def _repr_html_(self):
        source = self.source
        if source is None:
            data = binascii.b2a_base64(bytes(self.data or b""), newline=False).decode()
            source = "data:%s;base64,%s" % (self.mimetype, data)
        return '<%s controls src="%s"></%s>' % (self._tag, _escape(source), self._tag)


class Video(_Media):
    pass


class Audio(_Media):
    _tag, _type = "audio", "audio/wav"

    def _encode(self, data):
        import io
        import struct
        import wave

        if not self.rate:
            raise ValueError("rate must be specified when data is a numpy array or list of audio samples.")
        samples = [float(sample) for sample in data]
        peak = max((abs(sample) for sample in samples), default=0) or 1
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(int(self.rate))
            scaled = (int(sample / peak * 32767) for sample in samples)
            file.writeframes(struct.pack("<%dh" % len(samples), *scaled))
        return out.getvalue()


class IFrame:
    """A page inside the output."""

    def __init__(self, src, width, height, extras=None, **kwargs):
        self.src, self.width, self.height = src, width, height

    def _repr_html_(self):
        return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>' % (
            self.width,
            self.height,
            _escape(str(self.src)),
        )


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, **kwargs):
        self.id = id
        super().__init__("https://www.youtube.com/embed/%s" % id, width, height)


class FileLink:
    """A link to a file."""

    def __init__(self, path, **kwargs):
        self.path = str(path)

    def __repr__(self):
        return os.path.abspath(self.path)

    def _repr_html_(self):
        path = _escape(self.path)
        return "<a href='%s' target='_blank'>%s</a><br>" % (path, path)


class FileLinks(FileLink):
    """The files of a directory."""

    def __repr__(self):
        names = sorted(os.path.join(top, n) for top, _, files in os.walk(self.path) for n in files)
        return "\n".join(names)

    def _repr_html_(self):
        return "<br>".join(_escape(line) for line in repr(self).split("\n"))


def _typed(kind):
    """A display function for one kind of representation."""

    def show(*objs, raw=False, metadata=None):
        for value in objs:
            if raw:
                shell.publish({kind: value}, False)
            else:
                display(value, include={"text/plain", kind})

    return show


display_pretty = _typed("text/plain")
display_html = _typed("text/html")
display_markdown = _typed("text/markdown")
display_svg = _typed("image/svg+xml")
display_png = _typed("image/png")
display_jpeg = _typed("image/jpeg")
display_latex = _typed("text/latex")
display_json = _typed("application/json")
display_javascript = _typed("application/javascript")
display_pdf = _typed("application/pdf")


def set_matplotlib_formats(*formats, **kwargs):
    """Accepted: figures are PNG."""


def set_matplotlib_close(close=True):
    """Accepted: figures are closed when they have been shown."""


for _class in list(globals().values()):
    if isinstance(_class, type) and _class.__module__ == __name__:
        where = "IPython.core.display"
        if _class in (IFrame, YouTubeVideo, FileLink, FileLinks, Audio, Code):
            where = "IPython.lib.display"
        elif _class is DisplayHandle:
            where = "IPython.core.display_functions"
        _class.__module__ = where

names = [name for name in dir() if not name.startswith("_")]
for _other in ("binascii", "os", "shell", "where"):
    names.remove(_other)
