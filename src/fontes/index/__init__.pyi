from .index import Index as Index
from .remote import copy_index as copy_index
from .state import State as State
from .writer import Change as Change
