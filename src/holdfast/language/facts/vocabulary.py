"""The closed word lists of the rules for facts: which verbs say which relation, and which words forbid a reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What an object has to look like for the relation to hold: "I live in hope" names no place.
Shape = Literal["thing", "place", "name", "date", "belonging", "job"]
Form = Literal["base", "third", "past", "ing"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a verb phrase says: its relation, whether it swaps the sides or denies, and what the object must be."""

    relation: str
    rule: str
    inverse: bool = False
    shape: Shape = "thing"
    denies: bool = False


def _verbs() -> dict[tuple[str, ...], tuple[Form, Meaning]]:
    """Return every form of every verb phrase, with what it means."""
    # relation (! denies) | base third ing past ("-" where the past says nothing about now) | particle | shape
    table = """
    uses | use uses using - | |
    uses | utilise utilises utilising - | |
    uses | utilize utilizes utilizing - | |
    uses | run runs running - | on | name
    provides | provide provides providing - | |
    provides | offer offers offering - | |
    depends_on | depend depends depending - | on |
    depends_on | depend depends depending - | upon |
    depends_on | rely relies relying - | on |
    depends_on | rely relies relying - | upon |
    depends_on | require requires requiring - | |
    !depends_on | work works working - | without |
    !depends_on | run runs running - | without |
    part_of | belong belongs belonging - | to |
    has_part | contain contains containing - | |
    has_part | consist consists consisting - | of |
    has_part | comprise comprises comprising - | |
    has_part | include includes including - | |
    relevant_for | help helps helping - | with |
    supports | support supports supporting - | |
    supports | enable enables enabling - | |
    mentions | mention mentions mentioning mentioned | |
    causes | cause causes causing caused | |
    causes | lead leads leading led | to |
    causes | trigger triggers triggering triggered | |
    causes | result results resulting resulted | in |
    lives_in | live lives living - | in | place
    lives_in | reside resides residing - | in | place
    works_at | work works working - | at | name
    works_at | work works working - | for | name
    works_as | work works working - | as a | job
    works_as | work works working - | as an | job
    owns | own owns owning - | |
    drives | drive drives driving - | a | name
    drives | drive drives driving - | an | name
    has | have has having - | | belonging
    likes | like likes liking - | |
    likes | love loves loving - | |
    likes | enjoy enjoys enjoying - | |
    dislikes | dislike dislikes disliking - | |
    dislikes | hate hates hating - | |
    married_to | marry marries marrying married | | name
    speaks | speak speaks speaking - | | name
    has_capability | have has having - | the capability of |
    has_capability | have has having - | the capability to |
    has_capability | have has having - | capability |
    has_capability | have has having - | the ability to |
    """
    found: dict[tuple[str, ...], tuple[Form, Meaning]] = {}
    forms: tuple[Form, ...] = ("base", "third", "ing", "past")
    for line in table.strip().splitlines():
        relation, verb, particle, shape = (part.strip() for part in line.split("|"))
        inverse, denies, relation = relation == "has_part", relation.startswith("!"), relation.lstrip("!")
        kind: Shape = shape or "thing"  # type: ignore[assignment]
        meaning = Meaning("part_of" if inverse else relation, "inverse" if inverse else "verb", inverse, kind, denies)
        for form, word in zip(forms, verb.split(), strict=True):
            if word != "-":
                found[(word, *particle.split())] = (form, meaning)
    return found


VERBS = _verbs()
LONGEST_VERB = max(map(len, VERBS))


def _states() -> dict[tuple[str, ...], Meaning]:
    """Return what may follow am, is and are, with what it means."""
    # relation (~ swaps the sides) | phrases | shape
    table = """
    ~uses | used by / utilised by |
    uses | powered by / built on / built with / built upon / written in / implemented in |
    ~provides | provided by / offered by |
    has_capability | capable of |
    ~depends_on | required by |
    depends_on | dependent on |
    part_of | part of / a part of / a component of / a module of / a member of / a subsystem of / contained in |
    ~part_of | made up of / composed of |
    instance_of | a kind of / a type of / a form of / a subclass of / an instance of / an example of |
    relevant_for | relevant for / relevant to / useful for / important for / helpful for |
    ~supports | supported by / enabled by |
    ~mentions | mentioned in / mentioned by |
    about | about |
    ~causes | caused by / triggered by |
    lives_in | based in | place
    works_at | employed by / employed at | name
    married_to | married to | name
    likes | a fan of / a big fan of / fond of |
    allergic_to | allergic to |
    named | called / named | name
    born_on | born on | date
    born_in | born in | place
    """
    found: dict[tuple[str, ...], Meaning] = {}
    for line in table.strip().splitlines():
        relation, phrases, shape = (part.strip() for part in line.split("|"))
        swapped = relation.startswith("~")
        kind: Shape = shape or "thing"  # type: ignore[assignment]
        meaning = Meaning(relation.lstrip("~"), "passive" if swapped else "state", swapped, kind)
        found.update({tuple(phrase.split()): meaning for phrase in phrases.split(" / ")})
    return found


STATES = _states()
LONGEST_STATE = max(map(len, STATES))
# Of the past these still hold: what caused what, and where and when somebody was born.
LASTING = frozenset({"causes", "born_on", "born_in", "mentions"})

ADVERBS = frozenset(
    """
    actually already also always basically both chiefly commonly currently finally frequently fully generally heavily
    internally just largely mainly mostly natively normally now nowadays often only originally presently primarily
    really recently regularly simply still therefore today typically usually very
    """.split()
)
NEGATIONS = frozenset("not never hardly barely rarely seldom".split())
BE = frozenset("am is are".split())
WAS = frozenset("was were".split())
QUIT = frozenset("stopped quit ceased".split())

# A sentence with one of these supposes, reports, doubts or asks; it states nothing.
UNCERTAIN = frozenset(
    """
    if unless whether maybe perhaps probably possibly presumably supposedly allegedly apparently reportedly likely
    unlikely seemingly rumour rumor rumoured imagine suppose supposing assume assuming pretend pretends hypothetically
    wish wishes wished hope hopes hoped hoping think thinks thought thinking guess guesses believe believes believed
    suspect suspects doubt doubts wonder wonders wondering heard hear hears say says said saying tell tells told claim
    claims claimed according ask asks asked seems seem seemed appears looks dream dreamed dreamt joke joking kidding
    expect expects expected either theory principle fiction lets false untrue please otherwise
    """.split()
)
# A sentence that begins with one of these is a question or a wish, with or without its mark.
ASKING = frozenset(
    """
    do does did is are was were am can could will would should shall may might must has have had what when where
    which who whom whose why how let once whenever until don't
    """.split()
)
# May stand before a clause without being its subject.
LEADS = frozenset(
    """
    well so and but also yes yeah no ok okay oh anyway fyi btw hi hello hey however moreover furthermore besides then
    sure right because since although though while whereas still news
    """.split()
) | (ADVERBS - {"both", "only", "very", "just"})
SUBORDINATORS = frozenset("although though because while whereas since".split())
# A place or time put before a clause: "At work, we use Slack".
LEAD_PREPOSITIONS = frozenset("in at on by for during since after from these this".split())
# What is so in a story, a dream or a plan is not so.
FICTIONAL = frozenset(
    "film movie book story novel game series show play song theory principle dream plan joke".split()
)
BOUNDARIES = frozenset("; : – — but and because so while whereas although though".split())

PRONOUNS = frozenset(
    """
    he she it they you him her them us me this that these those there here who whom whose which what where when why
    how everyone everybody everything someone somebody something anyone anybody anything nobody nothing none noone one
    ones your yours his hers its their theirs mine ours myself yourself itself each another others other such same
    few many much more most less least several some any no all every enough lot lots bit own either neither
    """.split()
)
FIRST = frozenset({"i", "we"})
OURS = frozenset({"my", "our"})
DETERMINERS = frozenset({"a", "an", "the"})
NUMBERS = frozenset("two three four five six seven eight nine ten".split())

_AUXILIARIES = """
    am is are was were be been being do does did has have had will would shall should can could may might must ought
    not never no nor or to than if unless whether as because so let please yet even ever again
"""
# Common verbs that name no relation: their presence means that a stretch of words is a clause and not a name.
_OTHER_VERBS = """
    make makes made making take takes took taking give gives gave giving get gets got getting go goes went going come
    comes came coming know knows knew known see sees saw seen look looks looked find finds found want wants wanted
    try tries tried trying need needs needed keep keeps kept put puts feel feels felt become becomes became leave
    leaves left begin begins began start starts started stop stops stopped show shows showed write writes wrote read
    reads talk talks talked speak speaks spoke turn turns turned buy buys bought bring brings brought hold holds held
    move moves moved moving happen happens happened build builds built run runs ran grow grows grew lose loses lost
    pay pays paid meet meets met send sends sent fall falls fell cut cuts sell sells sold break breaks broke spend
    spends spent win wins won eat eats ate drink drinks drank sit sits sat stand stands stood sleep sleeps slept call
    calls called work works worked working live lives lived living use uses used using provide provides provided
    depend depends depended rely relies relied require requires required belong belongs contain contains consist
    consists support supports supported mention mentions cause causes enable enables love loves loved like likes liked
    hate hates hated enjoy enjoys own owns owned prefer prefers switch switched migrate migrated replace replaced join
    joined allow allows allowed crash crashes crashed fail fails failed remain remains stay stays stayed plan plans
    planning consider considering intend intends agree agrees forget forgot remember remembers understand understood
    offer offers help helps helped lead leads led trigger triggers triggered include includes speak marry married
"""
# Words that also are nouns in names and objects ("support", "the help desk", "work", "love") may begin or end one.
_NOUNS_TOO = """
    need plan call work use support cause love like help offer lead look talk turn build run cut drink sleep stay show
    read start stop move find claim switch trigger plans calls works needs building meeting running working living
    reading writing leaves living live show shows making drinks
"""
AUXILIARIES = frozenset(_AUXILIARIES.split())
OTHER_VERBS = frozenset(_OTHER_VERBS.split())
NEVER_IN_NAMES = (AUXILIARIES | PRONOUNS | (OTHER_VERBS - frozenset(_NOUNS_TOO.split()))) - {"no"} | {"no", "i", "we"}

# Where an object ends.
AFTER_OBJECT = frozenset(
    """
    for in at on with by from via through into over under during after before since until within without between
    against about like per because while when where that which who whose though although whereas then now today
    yesterday daily already too again anymore any every last this next these those recently yet instead rather not
    also well ever as and or but nor if so than to except including plus once twice together only alone both
    named called
    """.split()
)
LY_NOUNS = frozenset("family assembly supply reply anomaly fly jelly belly bully rally italy july lily emily".split())

# A thing that is "a bit late" or "a good idea" is no instance of a bit or of an idea.
EMPTY_CLASSES = frozenset(
    """
    bit lot thing way one question idea point problem shame pity joke mess pain matter must deal chance
    nightmare dream
    piece star legend hit miss disaster surprise mystery pleasure blast fact lie start step sign reason result issue
    success failure bargain steal treat gem beast beauty hero winner loser risk mistake relief joy delight challenge
    week day year time while moment minute hour fan friend match fit difference choice option example part kind sort
    type form instance component member module couple number waste bummer trap no-brainer stretch adventure classic
    priority experience journey skill escape outlet passion inspiration reminder feeling bonus plus process blessing
    gift honour honor favourite favorite struggle must-see must-have game-changer break place thrill
    """.split()
)
EVALUATIVE = frozenset(
    """
    good great nice bad better best worse worst big huge little small perfect terrible horrible awful wonderful lovely
    fine fair real true total complete bit tad total absolute poor cool fun funny boring amazing interesting such
    quite rather pretty awesome different super fantastic incredible special important key hard easy tough cute sweet
    must-visit must-see solid new beautiful excellent soft ideal powerful crucial essential vital true major
    """.split()
)
# "Part of life" is a comfort and no structure.
EMPTY_WHOLES = frozenset("life fun deal job plan problem process reason reality game journey story charm".split())
# A gerund that needs the words after its preposition: "listening to" is not yet a liking.
OPEN_GERUNDS = frozenset("to into for about with up at out of like from through on".split())
JOBS = frozenset(
    """
    accountant actor actress architect artist baker barber barista bartender biologist bookkeeper builder butcher
    carpenter cashier chef chemist cleaner coach consultant cook dancer dentist designer developer doctor driver
    economist editor electrician engineer farmer firefighter fisherman florist gardener geologist hairdresser
    historian journalist judge lawyer lecturer librarian manager mechanic midwife musician nurse optician painter
    paramedic pharmacist photographer physicist pilot plumber poet programmer psychologist researcher sailor scientist
    secretary singer solicitor student surgeon surveyor tailor teacher technician therapist translator tutor vet
    veterinarian waiter waitress welder writer
    """.split()
)
# "I have a question" is no possession; only what people keep, and kin, counts.
BELONGINGS = frozenset(
    """
    apartment bicycle bike boat brother brothers camper canoe car cars cat cats cello chicken chickens child children
    cottage cousin cousins daughter daughters dog dogs farm fiancé fiancée flat garden goat goats grandson guitar
    hamster horse horses house husband kayak kid kids laptop motorbike motorcycle nephew niece parrot piano
    pony rabbit
    rabbits sister sisters son sons stepson tent tortoise tractor twins van violin wife
    """.split()
)
# One moves to these without leaving home.
NOT_PLACES = frozenset(
    """
    kubernetes linux windows macos python rust java kotlin typescript javascript react postgres postgresql
    mysql mongodb
    redis kafka azure aws gcp docker github gitlab bitbucket slack teams zoom jira linear notion android ios ubuntu
    debian fedora nix terraform ansible jenkins buildkite snowflake databricks spark elasticsearch sqlite chrome
    firefox gmail outlook hope fear peace monday tuesday wednesday thursday friday saturday sunday january february
    march april june july august september october november december plan sales marketing
    """.split()
)
MONTHS = frozenset(
    """
    january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec
    """.split()
)

# What a predicate may begin with; every other word is passed over without a look at its surroundings.
OPENERS = (
    ADVERBS
    | NEGATIONS
    | BE
    | WAS
    | QUIT
    | {phrase[0] for phrase in VERBS}
    | set("no do does can has have moved relocated switched migrated replaced joined left , which who that".split())
)
