"""Read drawn charts back."""

from xml.etree.ElementTree import Element

from hypothesis import strategies as st

SVG = "{http://www.w3.org/2000/svg}"


numbers = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9)


positive = st.floats(1e-9, 1e9)


def texts_of(group: Element) -> list[str]:
    return ["".join(text.itertext()) for text in group.findall(f"{SVG}text")]
