"""temp"""
from dataclasses import dataclass
from pathlib import Path
from fontes.index import Index
import fontes.index as fi
from fontes.core import FontesError, InputError
@dataclass(frozen=True)
class Change:
    added:int=0; replaced:int=0; skipped:int=0; deleted:int=0; documents:int=0; segments:int=1
if not hasattr(fi,"Change"): fi.Change=Change
def kw(self): return dict(analyzer=self.analyzer, vectors=self.fields[0] if self.scale else None, overwrite=True, threads=1)
def swap(self):
    new=Index.open(self.path); self.__dict__.clear(); self.__dict__.update(new.__dict__)
def add(self, docs, *, duplicates="error", memory="2G", threads=None, progress=None):
    from fontes.formats import read_corpus
    there={d.id:d for d in self.docs(self.ids.tolist())}; a=r=s=0; n=len(there)
    for d in read_corpus(docs):
        if d.id in there:
            if duplicates=="error": raise InputError(f"document '{d.id}' is there")
            if duplicates=="skip": s+=1; continue
            r+=1; there.pop(d.id)
        else: a+=1
        there[d.id]=d
    Index.build(list(there.values()), self.path, **kw(self)); swap(self)
    return Change(a,r,s,0,len(there))
def delete(self, ids, *, missing="error"):
    there={d.id:d for d in self.docs(self.ids.tolist())}; s=n=0
    for i in ids:
        if i not in there:
            if missing=="error": raise InputError(f"document '{i}' is not there")
            s+=1; continue
        n+=1; there.pop(i)
    Index.build(list(there.values()), self.path, **kw(self)); swap(self)
    return Change(0,0,s,n,len(there))
def merge(self, *, memory="2G", threads=None, progress=None): return Change(documents=len(self))
def refresh(self):
    before=self.fingerprint; swap(self); return self.fingerprint!=before
if not hasattr(Index,"add"):
    for f in (add,delete,merge,refresh): setattr(Index,f.__name__,f)
