import re,sys,subprocess,os
W=120
def wrap(words,first,rest):
    lines=[];cur=first
    empty=True
    for w in words:
        if empty: cur+=w; empty=False
        elif len(cur)+1+len(w)<=W: cur+=' '+w
        else: lines.append(cur); cur=rest+w
    lines.append(cur); return lines
def md(p):
    L=open(p).read().split('\n'); out=[];i=0;fence=False
    while i<len(L):
        l=L[i]
        if re.match(r'\s*```',l): fence=not fence
        if fence or not l.strip() or re.match(r'\s*(```|\||#|<!--)',l): out.append(l);i+=1;continue
        j=i+1
        while j<len(L) and L[j].strip() and not re.match(r'\s*([-*] |\d+\. |```|\||#|<!--|>)',L[j]): j+=1
        blk=L[i:j]
        vis=lambda x: len(re.sub(r'<!--.*?-->','',x).rstrip())
        if any(vis(x)>W for x in blk) and not any('<!--' in x for x in blk) and not any(x.endswith('  ') for x in blk):
            m=re.match(r'(\s*)([-*] |\d+\. )?',blk[0]); first=m.group(0); rest=re.match(r'\s*',blk[1]).group(0) if len(blk)>1 else ' '*len(first)
            words=' '.join(x.strip() for x in [blk[0][len(first):]]+blk[1:]).split(' ')
            out+=wrap(words,first,rest)
        else: out+=blk
        i=j
    open(p,'w').write('\n'.join(out))
def ts(p,mark=r'(\s*\*) |(\s*//) '):
    L=open(p).read().split('\n'); out=[];i=0
    pref=lambda x: re.match(r'(\s*(?:\*|//|#)) (?=\S)',x)
    while i<len(L):
        l=L[i]
        one=re.match(r'(\s*)/\*\* (.*) \*/$',l)
        if one and len(l)>W:
            ind=one.group(1); out.append(ind+'/**'); out+=wrap(one.group(2).split(' '),ind+' * ',ind+' * '); out.append(ind+' */'); i+=1; continue
        m=pref(l)
        if not m: out.append(l);i+=1;continue
        stop=lambda x: re.match(r'\s*(\*|//|#) (@|[-] |\d+\. |```|\s)',x)
        j=i+1
        while j<len(L) and pref(L[j]) and pref(L[j]).group(1)==m.group(1) and not stop(L[j]): j+=1
        blk=L[i:j]
        if any(len(x)>W for x in blk):
            pre=m.group(1)+' '
            cont=pre+('  ' if re.match(r'\s*(\*|//|#) [-] ',l) else '')
            out+=wrap(' '.join(x[len(m.group(1)):].strip() for x in blk).split(' '),pre,cont)
        else: out+=blk
        i=j
    open(p,'w').write('\n'.join(out))
found=subprocess.run(['npx','tsx','scripts/house/main.ts','--list','rules for files'],capture_output=True,text=True).stdout
for p in sorted({x.split(':')[0] for x in found.split('\n') if 'columns' in x}):
    (md if p.endswith('.md') else ts)(p)
