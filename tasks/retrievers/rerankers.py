"""What can order rankings anew, by its name; a new kind is one line here and one in `reranking`."""

from yarus.tasks.config.services import is_address, is_function, open_address
from yarus.tasks.retrievers.cross_encoder import cross_encoder

PLACE = "YARUS_RERANKER_SERVICE"
SERVICE, FUNCTION, MODEL = "http://…", "module:function", "name or folder"


def reranker_kind(name: str) -> str:
    """What a name means: SERVICE, FUNCTION or MODEL.

    Raises:
        InputError: an address that has a password in it, or a model that is not on this machine.
    """
    if is_address(name):
        open_address(name, PLACE)
        return SERVICE
    if is_function(name):
        return FUNCTION
    cross_encoder(name)
    return MODEL


def is_outside(name: str | None) -> bool:
    """Whether a service or somebody's function scores, which need not say the same twice."""
    return name is not None and (is_address(name) or is_function(name))
