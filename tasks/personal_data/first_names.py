"""First names, in all their cases and in Latin letters."""

import re

FIRST_NAMES = """
александр александра алексей алёна алина алиса алла альберт анастасия анатолий ангелина андрей анжела анна антон
антонина ариана арина аркадий арсений артём артемий артур асия ася ахмед айгуль азат айдар айрат аксинья амина амир
аида белла богдан борис булат вадим валентин валентина валерий валерия варвара василий василиса вера вероника виктор
виктория виолетта виталий влад владимир владислав владислава всеволод вячеслав галина геннадий георгий герман глафира
глеб григорий гузель гульнара дамир дана данил данила даниил даниэль дарина дарья денис диана дина динара дмитрий ева
евгений евгения егор екатерина елена елизавета ефим жанна захар зинаида злата зоя иван игнат игорь ильдар ильнур ильяс
илья инга инесса инна иннокентий ирина камила камилла карина кира кирилл клавдия клим константин кристина ксения лада
лариса лев леонид лиана лидия лилия любовь людмила магомед майя макар максим марат маргарита марина мария марк марта
матвей мила милана милена мирон мирослав мирослава михаил надежда назар наталия наталья наиль нелли ника никита
николай нина оксана олег олеся ольга павел пётр платон полина прохор равиль радик рамиль ренат рената рафаэль рина
ринат роберт родион роза роман ростислав руслан рустам рустем сабина савва савелий светлана святослав семён сергей
снежана софия софья станислав степан стефания таисия тамара тарас татьяна тимофей тимур тихон ульяна фаина фёдор
филипп эвелина эдгар эдуард элеонора эльвира эльдар эльмира эмилия эмиль эрик юлиана юлия юрий ян яна ярослав ярослава
яков аня алёша ваня вася витя вова вика даня даша дима женя жора ира катя коля костя ксюша лена лёша лида люба люда
маша миша надя настя наташа оля паша петя рита рома саша света серёжа сеня слава соня стас таня толя тоня ульяша федя
юля юра ярик
"""
WORDS_TOO = """
вера веры вере веру верой любовь любви любовью надежда надежды надежде надежду надеждой роман романа романе роману
романом романы лев марк марка марке марки марку маркой марта марте марту мартом март роза розы розе розу розой слава
славы славе славу славой света свете свету светом мила мира лада лады злата дана дане дано дану даны рома ян ника нике
лида клим тарас герман германа германе майя майе май мая маю маем платон тихон назар ира рита дина оля коля коли соня
соню кира лена лену ася поля люда захар эрик дима витя костя кости костью костей софия софии прохор ефим мирон
владимир владимире владимира ростислав ваня вани женя жени рина белла роберт даня
"""
"""Forms of names that are words or places too: without a capital letter they are no sign."""
OTHERS_OF = {
    "лев": "льва льву львом льве",
    "петр": "петра петру петром петре",
    "павел": "павла павлу павлом павле",
    "любовь": "любови любовью",
}
ENDINGS = {"й": "й я ю ем е и", "ь": "ь я ю ем е и ью", "я": "я и е ю ей", "а": "а ы и е у ой ей", "": " а у ом ем е"}
ELSEWHERE_TOO = """
ana maria viktoria roman marina mark marta robert german alisa diana karina dina kira nika lada mila ian eva albert
roza filip platon klim inga emil erik edgar rina dana lev maks vera sofia ia nina artur taras angelina iana bela ira
rita vika daniel
"""
"""Names as they sound in other languages too: they count before a Slavic surname only."""
SOUNDS = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziiklmnoprstufie", strict=True))
    | {"ё": "e", "ж": "zh", "х": "h", "ц": "c", "ч": "ch", "ш": "sh", "щ": "sh", "ю": "iu", "я": "ia", "ъ": "", "ь": ""}
)


def sound_of(word: str) -> str:
    """A Latin word as it sounds, for a name has as many spellings as there are tables of letters."""
    for many, one in (
        ("kh", "h"),
        ("ks", "x"),
        ("ts", "c"),
        ("y", "i"),
        ("j", "i"),
        ("w", "v"),
        ("shch", "sh"),
        ("ph", "f"),
    ):
        word = word.replace(many, one)
    return re.sub(r"(.)\1", r"\1", word)


def _forms(name: str) -> list[str]:
    """A first name in all cases, and forms that no case has: nobody is called so otherwise."""
    if name in OTHERS_OF:
        return [name, *OTHERS_OF[name].split()]
    ending = next((end for end in "йья" if name.endswith(end)), "а" if name.endswith("а") else "")
    if name.endswith(("и", "о", "у")):
        return [name]
    return [name, *(name.removesuffix(ending) + end for end in ENDINGS[ending].split())]


BASES = frozenset(name.replace("ё", "е") for name in FIRST_NAMES.split())
FORMS = frozenset(form for name in BASES for form in _forms(name))
LATIN = frozenset(sound_of(name.translate(SOUNDS)) for name in BASES)
ALSO_WORDS = frozenset(WORDS_TOO.split())
ALSO_LATIN = frozenset(ELSEWHERE_TOO.split())
